"""Masks that attention adds to its scores, as 8 bits can hold them.

Exporters add minus infinity or the smallest float to the scores of padding. One scale serves a whole tensor, so the
scores would all have one code. Any value below -32 leaves a share below 10^-13 of an equal score, so -32 replaces it.
PyTorch's exporter also repeats the row of padding for every token, and replaces the results of rows without any token,
which are not numbers. Neither is needed then: one row is read, and all results are numbers.
"""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from intloom.quantization.graph_index import GraphIndex
from intloom.quantization.graph_values import channel_maxima
from intloom.quantization.samples import Sample

_BOUND = -32.0
_PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "LayerNormalization"})
"""Operators of activations: what depends on none of them is no score."""
_BROADCASTING = frozenset({"Add", "And", "Cast", "Equal", "Max", "Min", "Mul", "Not", "Or", "Sub", "Where"})
_MATRIX = 2
_PREFIX = "mask/"


def bound_masks(model: onnx.ModelProto) -> bool:
    """Rewrite all masks; return whether there was one to rewrite."""
    graph = _Masks(model.graph)
    changed = [graph.bound(node) for node in [*model.graph.node] if graph.adds_mask(node)]
    return any(changed)


def mask_nodes(graph: onnx.GraphProto) -> list[str]:
    """Names of the nodes that compute rewritten masks; the host computes them in float."""
    masks = _Masks(graph)
    nodes = [n for value in masks.makers if value.startswith(_PREFIX) for n in masks.ancestors(value)]
    return list(dict.fromkeys(node.name for node in nodes))


def unseen_masks(model: onnx.ModelProto, samples: Sequence[Sample]) -> bool:
    """Whether a rewritten mask hides nothing in any sample: its range has only 0 then."""
    names = [n.output[0] for n in model.graph.node if n.op_type == "Max" and n.output[0].startswith(_PREFIX)]
    return bool(names) and not all(values.any() for values in channel_maxima(model, names, samples).values())


class _Masks(GraphIndex):
    """A graph with its masks."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        super().__init__(graph)
        self.shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in graph.value_info}
        self.floats = {v.name for v in graph.input if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}

    def ancestors(self, value: str) -> list[onnx.NodeProto]:
        """The nodes that a value depends on."""
        seen, todo = dict[str, onnx.NodeProto](), [value]
        while todo:
            node = self.makers.get(todo.pop())
            if node is not None and node.output[0] not in seen:
                seen[node.output[0]] = node
                todo += node.input
        return list(seen.values())

    def adds_mask(self, node: onnx.NodeProto) -> bool:
        """Whether the node adds a mask to scores that a Softmax alone reads."""
        if node.op_type != "Add" or [n.op_type for n in self.readers(node.output[0])] != ["Softmax"]:
            return False
        return sum(map(self._is_mask, node.input)) == 1

    def _is_mask(self, value: str) -> bool:
        """Whether a value depends on integers and constants alone."""
        nodes = self.ancestors(value)
        read = {value} | {i for n in nodes for i in n.input}
        return not read & self.floats and not any(n.op_type in _PRODUCTS for n in nodes)

    def bound(self, node: onnx.NodeProto) -> bool:
        """Give the node its mask in the other form; return whether there is another."""
        (operand,) = (k for k, value in enumerate(node.input) if self._is_mask(value))
        value = node.input[operand]
        constant = self.constants.get(value)
        if constant is not None:
            if not all(map(self.adds_mask, self.readers(value))):
                return False
            values = numpy_helper.to_array(constant)
            constant.CopyFrom(numpy_helper.from_array(np.maximum(values, np.float32(_BOUND)), value))
            changed = bool(values.min() < _BOUND)
        else:
            changed = self._has_low_constant(value) or self._repeats_rows(value)
            if changed:
                node.input[operand] = self._rewritten(value)
        (softmax,) = self.readers(node.output[0])
        return self._read_numbers(softmax.output[0]) or changed

    def _has_low_constant(self, value: str) -> bool:
        """Whether a value depends on a constant below the bound."""
        read = {i for n in self.ancestors(value) for i in n.input} & self.constants.keys()
        floats = [c for i in read if (c := self.constants[i]).data_type == onnx.TensorProto.FLOAT]
        return any(numpy_helper.to_array(c).min(initial=0) < _BOUND for c in floats)

    def _repeats_rows(self, value: str) -> bool:
        return self._shape(value)[-_MATRIX:-1] not in ([], [1]) and self._has_equal_rows(value)

    def _shape(self, value: str) -> list[int]:
        constant = self.constants.get(value)
        return self.shapes.get(value, []) if constant is None else list(constant.dims)

    def _has_equal_rows(self, value: str) -> bool:
        """Whether all rows of a value are equal, whatever the inputs are."""
        seen, todo = set[str](), [value]
        while todo:
            part = todo.pop()
            if part in seen or self._is_row(part):
                continue
            seen.add(part)
            node = self.makers.get(part)
            if node is None or node.op_type not in (*_BROADCASTING, "Expand"):
                return False
            todo += node.input[:1] if node.op_type == "Expand" else node.input
        return True

    def _is_row(self, value: str) -> bool:
        """Whether a value has one row, or is a constant with equal ones."""
        if value in self.constants:
            values = np.atleast_2d(numpy_helper.to_array(self.constants[value]))
            return bool(np.all(values == values[..., :1, :]))
        shape = self._shape(value)
        return shape[-_MATRIX:-1] == [1] or len(shape) == 1

    def _rewritten(self, value: str) -> str:
        """The mask, not below the bound, and only the first of equal rows."""
        name = _PREFIX + value
        if name in self.makers:
            return name
        after = [*self.graph.node].index(self.makers[value]) + 1
        self._constant("bound", np.array(_BOUND, np.float32))
        nodes = [helper.make_node("Max", [value, _PREFIX + "bound"], [name], name=name)]
        if self._repeats_rows(value):
            for part, number in (("starts", 0), ("ends", 1), ("axes", -_MATRIX)):
                self._constant(part, np.array([number], np.int64))
            nodes[0].input[0] = f"{name}/row"
            bounds = [_PREFIX + part for part in ("starts", "ends", "axes")]
            row = helper.make_node("Slice", [value, *bounds], [f"{name}/row"], name=f"{name}/row")
            nodes.insert(0, row)
        for k, node in enumerate(nodes):
            self.graph.node.insert(after + k, node)
        self.makers |= {n.output[0]: n for n in nodes}
        return name

    def _constant(self, name: str, value: np.ndarray) -> None:
        if _PREFIX + name not in self.constants:
            self.graph.initializer.append(numpy_helper.from_array(value, _PREFIX + name))
            self.constants[_PREFIX + name] = self.graph.initializer[-1]

    def _read_numbers(self, value: str) -> bool:
        """Let readers of a Softmax without what replaces its NaN read it itself."""
        nodes = [n for n in self.readers(value) if n.op_type == "Where" and n.input[2] == value]
        nodes = [n for n in nodes if (maker := self.makers.get(n.input[0])) and maker.op_type == "IsNaN"]
        for where in nodes:
            for reader in self.readers(where.output[0]):
                for k in (k for k, name in enumerate(reader.input) if name == where.output[0]):
                    reader.input[k] = value
            self.graph.node.remove(self.makers[where.input[0]])
            self.graph.node.remove(where)
        return bool(nodes)
