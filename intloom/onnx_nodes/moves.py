"""Operators that only move values, evaluated on 8-bit codes of the values.

Up to 256 different values of any element type are numbered in ascending order. Moving the numbers, or selecting the
largest, gives the same result as for the values. The front end and the golden model therefore run these operators on
any tensor with at most 256 different values.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.compiler.importer import Constant, OnnxNode, ValueType
from intloom.onnx_nodes.folding import run_folded
from intloom.onnx_nodes.registry import Evaluation, evaluates

Array = NDArray[Any]
_MOST_VALUES = 256


@evaluates("MaxPool", "GlobalMaxPool", "Resize", "Upsample", "Split", "Slice")
def move_one(e: Evaluation) -> tuple[Constant, ...]:
    """Operators that move the values of one tensor."""
    return _moved(e, 1)


@evaluates("Concat")
def join(e: Evaluation) -> tuple[Constant, ...]:
    """Operators that move the values of all operands."""
    return _moved(e, len(e.operands))


def _moved(e: Evaluation, count: int) -> tuple[Constant, ...]:
    data = [e.operand(i) for i in range(count)]
    values = np.unique(np.concatenate([d.array.ravel() for d in data]))
    if len(values) > _MOST_VALUES:
        raise UnsupportedError(
            f"node {e.node.name!r}: at most {_MOST_VALUES} different values are supported, not {len(values)}"
        )
    scale, zero = f"{e.node.name}/scale", f"{e.node.name}/zero"
    one = {scale: Constant(np.array(1, np.float32), "float"), zero: Constant(np.array(0, np.uint8), "uint8")}
    rest = {n: c for n, c in zip(e.node.inputs[count:], e.operands[count:], strict=True) if n and c is not None}
    inputs, nodes = {}, []
    for name, operand in zip(e.node.inputs, data, strict=False):
        inputs[f"{name}/codes"] = Constant(np.searchsorted(values, operand.array).astype(np.uint8), "uint8")
        nodes.append(OnnxNode(f"{name}/DQ", "DequantizeLinear", (f"{name}/codes", scale, zero), (name,)))
    nodes.append(e.node)
    outputs = {}
    for name in e.node.outputs:
        nodes.append(OnnxNode(f"{name}/Q", "QuantizeLinear", (name, scale, zero), (f"{name}/codes",)))
        outputs[f"{name}/codes"] = ValueType("uint8", e.model.shape(name))
    made = run_folded(e.model, nodes, inputs, {**one, **rest}, outputs)
    return tuple(Constant(values[codes], data[0].dtype) for codes in made)
