"""The error that a lowering raises for a pattern that it does not support."""

from __future__ import annotations

from intloom.common.errors import UnsupportedError


class UnsupportedPattern(UnsupportedError):
    """A lowering does not support a unit: the reason, and the remedy for the user."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
