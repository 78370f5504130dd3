"""The test plan: one file in docs/testplan for each component, with features, corner cases and their tests."""
