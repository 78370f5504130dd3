"""Cross-layer equalization: channels between two layers get equal ranges, without a change of the float result.

A positive factor per channel can be moved through ReLU from one layer's weights into those of the next. Channels
with small ranges then use more of the 8 bits.
"""

from collections import Counter

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

_PASSING = frozenset({"Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool"})
"""Operators for which f(s * x) = s * f(x) per channel with s > 0."""
_LARGEST_FACTOR = 1e3
_ROUNDS = 4


def equalize(model: onnx.ModelProto) -> int:
    """Equalize all pairs of convolutions in place; return the number of pairs."""
    pairs = _pairs(model.graph)
    constants = {i.name: i for i in model.graph.initializer}
    for _ in range(_ROUNDS):
        for first, second in pairs:
            _equalize_pair(constants, first, second)
    return len(pairs)


def _pairs(graph: onnx.GraphProto) -> list[tuple[onnx.NodeProto, onnx.NodeProto]]:
    """Convolutions whose result is read by one other convolution only, through operators that pass factors."""
    uses = Counter(name for node in graph.node for name in node.input)
    uses.update(o.name for o in graph.output)
    readers = {name: node for node in graph.node for name in node.input}
    constants = {i.name for i in graph.initializer}

    def is_layer(node: onnx.NodeProto) -> bool:
        return node.op_type == "Conv" and all(i in constants and uses[i] == 1 for i in node.input[1:])

    pairs = []
    for first in graph.node:
        name = first.output[0] if first.output else ""
        while uses[name] == 1 and name in readers and readers[name].op_type in _PASSING:
            name = readers[name].output[0]
        if is_layer(first) and uses[name] == 1 and name in readers and is_layer(readers[name]):
            pairs.append((first, readers[name]))
    return pairs


def _equalize_pair(constants: dict[str, onnx.TensorProto], first: onnx.NodeProto, second: onnx.NodeProto) -> None:
    kernel, following = (numpy_helper.to_array(constants[n.input[1]]).astype(np.float64) for n in (first, second))
    groups = next((a.i for a in second.attribute if a.name == "group"), 1)
    channels = len(kernel)
    # Input channels of the second layer as [channels, outputs of the channel's group, ...].
    by_input = np.moveaxis(following.reshape(groups, -1, *following.shape[1:]), 2, 1)
    by_input = by_input.reshape(channels, *by_input.shape[2:])
    out_range, in_range = (np.abs(w.reshape(channels, -1)).max(axis=1) for w in (kernel, by_input))
    usable = (out_range > 0) & (in_range > 0)
    factor = np.ones(channels)
    factor[usable] = np.sqrt(out_range[usable] * in_range[usable]) / out_range[usable]
    factor = np.clip(factor, 1 / _LARGEST_FACTOR, _LARGEST_FACTOR)
    _scale(constants, first.input[1], factor.reshape(-1, *[1] * (kernel.ndim - 1)))
    if len(first.input) > 2:
        _scale(constants, first.input[2], factor)
    inverse = 1 / factor.reshape(groups, 1, -1, *[1] * (following.ndim - 2))
    outputs = np.ones((groups, len(following) // groups, 1, *[1] * (following.ndim - 2)))
    _scale(constants, second.input[1], (inverse * outputs).reshape(len(following), -1, *[1] * (following.ndim - 2)))


def _scale(constants: dict[str, onnx.TensorProto], name: str, factor: NDArray[np.float64]) -> None:
    values = numpy_helper.to_array(constants[name])
    constants[name].CopyFrom(numpy_helper.from_array((values * factor).astype(values.dtype), name))
