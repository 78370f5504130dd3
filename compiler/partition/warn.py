"""Warnings for known traps."""

from __future__ import annotations

from ..fold.lowering import Lowering


def find_warnings(low: Lowering) -> tuple[str, ...]:
    """Sentences that name a node or tensor, the trap and the remedy."""
    return ()
