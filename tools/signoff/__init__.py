"""The sign-off page: what is verified of each component, from the test plan and from files in docs/data."""
