"""Data movement operators: their results contain only values of their first input."""

import numpy as np

from intloom.compiler.fold.patterns.qparams import real_constant
from intloom.compiler.importer import STANDARD, Model, OnnxNode

# fmt: off
DATA_MOVEMENT = frozenset({
    "MaxPool", "GlobalMaxPool", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Resize",
    "Upsample", "Identity", "Dropout", "Pad", "Gather",
})
# fmt: on
"""Operators whose result contains only values of their first input (Resize in mode nearest; Pad adds one constant)."""


def is_data_movement(node: OnnxNode) -> bool:
    """Whether the node only moves values."""
    if node.domain != STANDARD or node.op not in DATA_MOVEMENT:
        return False
    return node.op not in ("Resize", "Upsample") or node.text("mode", "nearest") == "nearest"


def pad_value(model: Model, node: OnnxNode) -> float | None:
    """The constant that a Pad inserts; None if it is not constant or is NaN."""
    given = real_constant(model, node.input(2)) if node.input(2) else np.array(node.real("value", 0.0))
    if given is None or given.size != 1 or np.isnan(given).any():
        return None
    return float(given.reshape(()))
