"""Parameters of a test of which some run every night only."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def with_nightly(names: Iterable[str], nightly: Container[str]) -> list[Any]:
    """All of these parameters; those in `nightly` are left out of `make test`."""
    return [pytest.param(name, marks=pytest.mark.nightly if name in nightly else ()) for name in names]
