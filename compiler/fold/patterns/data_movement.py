"""Data movement operators: their results hold only values of their first input."""

from __future__ import annotations

import numpy as np

from intloom.compiler.importer import STANDARD, Model, OnnxNode

# fmt: off
DATA_MOVEMENT = frozenset({
    "MaxPool", "GlobalMaxPool", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Resize",
    "Upsample", "Identity", "Dropout", "Pad",
})
# fmt: on
"""Operators whose result holds only values of their first input (Resize: in mode nearest; Pad: and one constant)."""


def is_data_movement(node: OnnxNode) -> bool:
    """The node only moves values."""
    if node.domain != STANDARD or node.op not in DATA_MOVEMENT:
        return False
    return node.op not in ("Resize", "Upsample") or node.text("mode", "nearest") == "nearest"


def pad_value(model: Model, node: OnnxNode) -> float | None:
    """The constant value of a Pad's border; None where it is not constant, or no number."""
    given = model.constant(node.input(2)) if node.input(2) else np.array(node.real("value", 0.0))
    if given is None or given.size != 1 or np.isnan(given).any():
        return None
    return float(given.reshape(()))
