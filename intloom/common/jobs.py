"""How many processes or simulations a command may start at the same time."""

from intloom.common.errors import UsageError

_MOST_JOBS = 256


def check_jobs(jobs: int) -> None:
    """Raise an error if there are none, or so many that the machine would have no memory left."""
    if not 1 <= jobs <= _MOST_JOBS:
        raise UsageError(f"jobs must be from 1 to {_MOST_JOBS}, not {jobs:,}")
