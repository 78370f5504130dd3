"""The error that a lowering raises for a pattern that it does not support."""

from intloom.common.errors import UnsupportedError

RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
"""Operators whose result at one step depends on that at the step before."""


class UnsupportedPattern(UnsupportedError):
    """A lowering does not support a unit: the reason, and the remedy for the user."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def recurrent(op: str) -> UnsupportedPattern:
    """The error for a recurrent cell."""
    return UnsupportedPattern(
        f"{op} keeps a state from step to step, with float gates that onnxruntime does not compute in integers",
        "leave it on the host, or train with convolutions over time",
    )
