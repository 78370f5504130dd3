"""Copies of channels with large values in what layer normalizations of a transformer read and write.

A few channels of such tensors have values many times those of all others, and one scale serves all channels. A channel
x is therefore stored as m * m channels of x / m, of which (m * m - m) / 2 have the opposite sign: their sum is x, and
the sum of their squares is that of x, so that a normalization over all channels has the same result. The constants
around the tensors are rewritten: columns of the layers that write them, rows of those that read them, embeddings,
factors and offsets. Only the number of channels by which a normalization divides is larger. The factors correct it for
the variance; the mean, small against the standard deviation, is smaller by up to one part in 24.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from intloom.quantization.graph_index import GraphIndex
from intloom.quantization.graph_values import channel_maxima
from intloom.quantization.samples import Sample

_SHARE = 24
"""At most one copy per so many channels: 384 channels become 400, one more block on 16 rows."""
_OUTLIER = 3.0
"""How many times the usual maximum of a channel an outlier has, in the geometric mean over all tensors."""
_SMALL = 1e-6
_EPSILON = 1e-5


@dataclass(frozen=True)
class _Copies:
    """The original channel of every channel, and its share with a sign."""

    index: NDArray[np.int64]
    share: NDArray[np.float64]
    channels: int
    """Before the copies."""

    def variance(self) -> float:
        """The mean square over all channels as a share of that over the channels before."""
        return self.channels / len(self.index)


@dataclass(frozen=True)
class _Stream:
    """Connected tensors with the same channels, in the order of computation."""

    channels: int
    values: tuple[str, ...]
    ends: tuple[str, ...]
    """Results of normalizations that other operators read, without copies."""


def copy_outlier_channels(model: onnx.ModelProto, samples: Sequence[Sample]) -> bool:
    """Give channels with large values copies; return whether there was any."""
    changed, visited = False, set[str]()
    for node in [*model.graph.node]:
        if node.op_type == "LayerNormalization" and node.input[0] not in visited:
            stream = _Walk(model.graph, node).stream()
            visited |= set(stream.values) if stream else set()
            copies = None if stream is None else _chosen(stream, channel_maxima(model, stream.values, samples))
            if stream is not None and copies is not None:
                _Rewriting(model.graph, stream, copies).run()
                changed = True
    return changed


def _chosen(stream: _Stream, maxima: Mapping[str, NDArray[np.float64]]) -> _Copies | None:
    """Copies of the largest channels, as many as the share allows; None if there is no outlier."""
    relative = [m / max(float(np.median(m)), _SMALL) for m in maxima.values()]
    size = np.exp(np.log(np.maximum(relative, _SMALL)).mean(axis=0))
    if size.max() <= _OUTLIER:
        return None
    factors, left = np.ones(stream.channels, np.int64), stream.channels // _SHARE
    while (2 * factors < left).any():
        largest = int(np.argmax(np.where(2 * factors < left, size / factors, 0.0)))
        left -= 2 * int(factors[largest]) + 1
        factors[largest] += 1
    copied = np.flatnonzero(factors > 1)
    index, share = [np.arange(stream.channels)], [1.0 / factors]
    for channel in copied:
        m = int(factors[channel])
        negative = (m * m - m) // 2
        index.append(np.full(m * m - 1, channel))
        share.append(np.where(np.arange(m * m - 1) < negative, -1.0, 1.0) / m)
    return _Copies(np.concatenate(index), np.concatenate(share), stream.channels)


def _flag(node: onnx.NodeProto, name: str) -> bool:
    return any(a.name == name and a.i for a in node.attribute)


def _input_axis(node: onnx.NodeProto) -> int:
    """The axis of a layer's weights that is its input's channels."""
    return int(_flag(node, "transB"))


class _Graph(GraphIndex):
    """A graph with its layers."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        super().__init__(graph)
        self.outputs = {o.name for o in graph.output}

    def is_constant(self, name: str, channels: int) -> bool:
        """Whether a constant has these channels along its last axis."""
        return name in self.constants and list(self.constants[name].dims)[-1:] == [channels]

    def matrix(self, node: onnx.NodeProto) -> tuple[int, int] | None:
        """Inputs and outputs of a layer with constant weights."""
        if node.op_type not in ("Gemm", "MatMul") or node.input[1] not in self.constants:
            return None
        dims = list(self.constants[node.input[1]].dims)
        if len(dims) != 2 or _flag(node, "transA"):
            return None
        if any(i and i not in self.constants for i in node.input[2:]):
            return None
        axis = _input_axis(node)
        return dims[axis], dims[1 - axis]


class _Walk(_Graph):
    """Walk from one normalization to all tensors that must have the same channels."""

    def __init__(self, graph: onnx.GraphProto, start: onnx.NodeProto) -> None:
        super().__init__(graph)
        self.channels = next(iter(self.constants[start.input[1]].dims), 0) if start.input[1] in self.constants else 0
        self.values, self.ends = {start.input[0]}, set[str]()

    def stream(self) -> _Stream | None:
        """The tensors; None if an operator that gets no copies takes part."""
        todo = [*self.values]
        while todo:
            near = self._near(todo.pop())
            if near is None:
                return None
            todo.extend(near - self.values)
            self.values |= near
        read = {i for n in self.graph.node if self._passes(n) or self._is_layer(n) for i in n.input}
        if self.ends & read:
            return None
        order = [*self.makers]
        return _Stream(self.channels, tuple(sorted(self.values, key=order.index)), tuple(sorted(self.ends)))

    def _near(self, value: str) -> set[str] | None:
        """Other tensors with the channels of this one; None if its maker or a reader allows no copies."""
        maker = self.makers.get(value)
        if maker is None or not (self._passes(maker) or self._makes(maker)):
            return None
        near = {i for i in maker.input if self._passes(maker) and i not in self.constants}
        for reader in self.readers(value):
            if self._passes(reader):
                near.add(reader.output[0])
            elif not (self._is_layer(reader) and reader.input[0] == value):
                self.ends.add(value)
        if value in self.outputs:
            self.ends.add(value)
        return None if value in self.ends and maker.op_type != "LayerNormalization" else near

    def _passes(self, node: onnx.NodeProto) -> bool:
        """Whether the node's operand and result have the same channels along the last axis."""
        if node.op_type == "Reshape":
            shape = self.constants.get(node.input[1])
            return shape is not None and int(numpy_helper.to_array(shape)[-1]) == self.channels
        if node.op_type == "LayerNormalization":
            given = {a.name: a.i for a in node.attribute}
            constants = all(self.is_constant(i, self.channels) for i in node.input[1:])
            return constants and given.get("axis", -1) == -1 and len(node.output) == 1
        return node.op_type == "Add" and all(
            i not in self.constants or self.is_constant(i, self.channels) for i in node.input
        )

    def _makes(self, node: onnx.NodeProto) -> bool:
        """Whether the node computes the channels with constants."""
        if node.op_type == "Gather":
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            table = self.constants.get(node.input[0])
            return table is not None and list(table.dims)[1:] == [self.channels] and axis == 0
        matrix, biases = self.matrix(node), [i for i in node.input[2:] if i]
        return (
            matrix is not None
            and matrix[1] == self.channels
            and all(self.is_constant(b, self.channels) for b in biases)
        )

    def _is_layer(self, node: onnx.NodeProto) -> bool:
        matrix = self.matrix(node)
        return matrix is not None and matrix[0] == self.channels


class _Rewriting(_Graph):
    """Give one stream its copies."""

    def __init__(self, graph: onnx.GraphProto, stream: _Stream, copies: _Copies) -> None:
        super().__init__(graph)
        self.stream, self.copies = stream, copies
        self.replaced = set[str]()

    def run(self) -> None:
        """Rewrite all constants, and cut the copies off at the ends."""
        values = set(self.stream.values)
        for node in [*self.graph.node]:
            if node.output[0] in values:
                self._write(node)
            elif values & set(node.input[:1]) and self.matrix(node):
                self._replace(node, 1, axis=_input_axis(node))
        for value in self.stream.ends:
            self._cut(value)
        used = {i for n in self.graph.node for i in n.input}
        for name in self.replaced - used:
            self.graph.initializer.remove(self.constants[name])
        # Their shapes have changed.
        kept = [v for v in self.graph.value_info if v.name not in values]
        del self.graph.value_info[:]
        self.graph.value_info.extend(kept)

    def _write(self, node: onnx.NodeProto) -> None:
        """Let a node write all channels."""
        if node.op_type == "Reshape":
            shape = numpy_helper.to_array(self.constants[node.input[1]]).copy()
            shape[-1] = len(self.copies.index)
            self._set(node, 1, shape)
        elif node.op_type == "LayerNormalization":
            self._normalize(node)
        elif node.op_type == "Gather":
            self._replace(node, 0, axis=1)
        elif node.op_type == "Add":
            for k in (k for k, name in enumerate(node.input) if name in self.constants):
                self._replace(node, k, axis=-1)
        else:
            self._replace(node, 1, axis=1 - _input_axis(node))
            for k in (k for k in range(2, len(node.input)) if node.input[k]):
                self._replace(node, k, axis=-1)

    def _normalize(self, node: onnx.NodeProto) -> None:
        """Factors of channels that are normalized with their shares, and offsets; an end has no copies."""
        scale = np.full(len(self.copies.index), self.copies.variance() ** 0.5)
        offset = self.copies.share
        if node.output[0] in self.stream.ends:
            original = np.arange(len(scale)) < self.stream.channels
            scale = np.where(original, scale / self.copies.share, 0.0)
            offset = original.astype(np.float64)
        for k, factor in zip(range(1, len(node.input)), (scale, offset), strict=False):
            values = numpy_helper.to_array(self.constants[node.input[k]])
            self._set(node, k, (values[self.copies.index] * factor).astype(values.dtype))
        epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), _EPSILON)
        kept = [a for a in node.attribute if a.name != "epsilon"]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute("epsilon", epsilon * self.copies.variance())])

    def _cut(self, value: str) -> None:
        """Store only the channels before the copies as the value."""
        maker = self.makers[value]
        maker.output[0] = f"{value}/copies"
        names = [f"{value}/copies/{name}" for name in ("starts", "ends", "axes")]
        self.graph.initializer.extend(
            numpy_helper.from_array(np.array([n], np.int64), name)
            for n, name in zip((0, self.stream.channels, -1), names, strict=True)
        )
        after = [*self.graph.node].index(maker) + 1
        cut = helper.make_node("Slice", [maker.output[0], *names], [value], name=f"{value}/copies/Slice")
        self.graph.node.insert(after, cut)

    def _replace(self, node: onnx.NodeProto, operand: int, axis: int) -> None:
        """Give a constant the copies along an axis."""
        values = numpy_helper.to_array(self.constants[node.input[operand]])
        copied = np.moveaxis(np.moveaxis(values, axis, -1)[..., self.copies.index] * self.copies.share, -1, axis)
        self._set(node, operand, np.ascontiguousarray(copied, values.dtype))

    def _set(self, node: onnx.NodeProto, operand: int, values: NDArray[np.generic]) -> None:
        """Store a constant of this node alone."""
        name = f"{node.name or node.output[0]}/copies/{operand}"
        self.replaced.add(node.input[operand])
        node.input[operand] = name
        self.graph.initializer.append(numpy_helper.from_array(values, name))
