"""The error that a lowering raises for a pattern that it does not support."""

from __future__ import annotations

from intloom.common.errors import UnsupportedError


class UnsupportedPattern(UnsupportedError):
    """A lowering cannot take a unit; says why and what the user may change."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
