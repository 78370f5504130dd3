"""Recurrent cells, which no lowering supports."""

from intloom.compiler.refusals import Refusal, UnsupportedPattern

RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
"""Operators whose result at one step depends on that at the step before."""


def recurrent(op: str) -> UnsupportedPattern:
    """The error for a recurrent cell."""
    return Refusal.RECURRENT(
        f"{op} keeps a state from step to step, with float gates that onnxruntime does not compute in integers",
        "leave it on the host, or train with convolutions over time",
    )
