"""Regressions: suites of cases, a runner that resumes and spreads, reports."""
