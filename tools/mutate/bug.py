"""A planted bug."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """A change of one line, and a test that fails with it."""

    name: str
    file: str
    right: str
    """Text that occurs once in the file."""
    wrong: str
    test: str
