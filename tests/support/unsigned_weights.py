"""The same quantized model with uint8 weights: each weight and its zero point are larger by 128."""

import numpy as np
import onnx
from onnx import numpy_helper

_WEIGHT_AND_ZERO = {"DequantizeLinear": (0, 2), "QLinearConv": (3, 5), "QLinearMatMul": (3, 5), "QGemm": (3, 5)}


def with_unsigned_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model; int8 weights without a zero point stay."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    stored = {t.name: t for t in copy.graph.initializer}
    made: dict[str, str] = {}
    for node in copy.graph.node:
        positions = _WEIGHT_AND_ZERO.get(node.op_type)
        if positions is None or len(node.input) <= positions[1] or not set(_names(node, positions)) <= stored.keys():
            continue
        if all(stored[n].data_type == onnx.TensorProto.INT8 for n in _names(node, positions)):
            for position in positions:
                name = node.input[position]
                if name not in made:
                    made[name] = f"{name}/unsigned"
                    array = numpy_helper.to_array(stored[name]).astype(np.int16) + 128
                    copy.graph.initializer.append(numpy_helper.from_array(array.astype(np.uint8), made[name]))
                node.input[position] = made[name]
    assert made, "the model has no int8 weights"
    return copy


def _names(node: onnx.NodeProto, positions: tuple[int, int]) -> list[str]:
    return [node.input[p] for p in positions]
