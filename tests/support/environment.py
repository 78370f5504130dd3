"""Environment variables of processes that tests start."""

import os


def not_measured() -> dict[str, str]:
    """The present variables, but for those that make coverage.py measure a started process.

    For tests of a full disk, where it could not write its counts, and of times.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}
