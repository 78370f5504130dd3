"""Linear enlargement by whole factors as a depthwise transposed convolution, whose quantized form has exact integers.

onnxruntime interpolates in float between quantized tensors, and rounds ties irregularly, so that integers reproduce
only a quantized Resize without ties (`compiler.fold.lowering.resize`). A transposed convolution with triangular weights
is the same function of floats.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from intloom.compiler.importer.interpolation import TRANSFORMS, linear_axis

_LARGEST = 4
"""A transposed convolution of larger factors has more parts than the accelerator computes at a gain."""


def without_linear_resize(model: onnx.ModelProto) -> bool:
    """Replace each linear Resize of an image by whole factors; others stay. Return whether there was any."""
    graph, found = model.graph, False
    stored = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*graph.value_info, *graph.input)}
    shapes |= {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in graph.output}
    for index, node in reversed([*enumerate(graph.node)]):
        if node.op_type == "Resize" and (factors := _factors(node, stored, shapes)) is not None:
            found = True
            made = _as_convolution(graph, node, shapes[node.input[0]][1], factors)
            del graph.node[index]
            for new in reversed(made):
                graph.node.insert(index, new)
    return found


def _factors(
    node: onnx.NodeProto, stored: Mapping[str, NDArray[np.generic]], shapes: Mapping[str, list[int]]
) -> tuple[int, int] | None:
    """The factors along height and width of a Resize that a convolution can replace."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    x, y = shapes.get(node.input[0], []), shapes.get(node.output[0], [])
    mode = given.get("coordinate_transformation_mode", b"half_pixel").decode()
    if given.get("mode") != b"linear" or mode not in TRANSFORMS:
        return None
    if len(x) != 4 or len(y) != 4 or min(*x, *y) < 1 or x[:2] != y[:2] or given.get("antialias"):
        return None
    factors = y[2] // x[2], y[3] // x[3]
    scales = stored.get(node.input[2]) if len(node.input) > 2 else None
    same = scales is None or not scales.size or tuple(scales.ravel()[-2:]) == factors
    fits = all(1 <= f <= _LARGEST and f * a == b for f, a, b in zip(factors, x[2:], y[2:], strict=True))
    return factors if same and fits and factors != (1, 1) else None


def _as_convolution(
    graph: onnx.GraphProto, node: onnx.NodeProto, channels: int, factors: tuple[int, int]
) -> list[onnx.NodeProto]:
    """A Pad that repeats the border, and the transposed convolution."""
    mode = next((a.s.decode() for a in node.attribute if a.name == "coordinate_transformation_mode"), "half_pixel")
    (rows, (top, bottom)), (columns, (left, right)) = (linear_axis(f, mode) for f in factors)
    weights = np.multiply.outer(rows, columns).astype(np.float32)
    name = f"{node.name or node.output[0]}/linear"
    graph.initializer.extend(
        [
            numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64), f"{name}/pads"),
            numpy_helper.from_array(np.broadcast_to(weights, (channels, 1, *weights.shape)).copy(), f"{name}/weights"),
        ]
    )
    return [
        helper.make_node("Pad", [node.input[0], f"{name}/pads"], [f"{name}/padded"], name=f"{name}/pad", mode="edge"),
        helper.make_node(
            "ConvTranspose",
            [f"{name}/padded", f"{name}/weights"],
            [node.output[0]],
            name=node.name or name,
            group=channels,
            strides=list(factors),
            kernel_shape=list(weights.shape),
            pads=[top, left, bottom, right],
        ),
    ]
