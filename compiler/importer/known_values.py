"""Values of a graph that depend on constants and sizes only, computed within limits before anything is simplified."""

from collections import ChainMap
from collections.abc import Iterator
from itertools import count
from typing import TypeAlias, TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from intloom.compiler.importer.subgraphs import captured_values, graphs_of

_Value = TypeVar("_Value")
Inherited: TypeAlias = ChainMap[str, _Value]
_OPSET = 18
"""Opset of the evaluation: operators on sizes have not changed since."""
_MOST_VALUES, _MOST_NODES = 4_096, 2_048
"""Elements of an evaluated value, and evaluated nodes of a model: files may let values grow with every node."""
_SIZES = ("Shape", "Size")
_SPREADING = frozenset({"ConstantOfShape", "Expand", "Tile"})
"""Operators whose last operand decides the size of the result."""
_EVALUATED = _SPREADING | {
    *_SIZES,
    "Abs", "Add", "And", "Cast", "Ceil", "Concat", "Constant", "Div", "Equal", "Floor", "Gather", "Greater",
    "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow",
    "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Round", "Slice", "Sqrt", "Squeeze", "Sub", "Sum",
    "Transpose", "Unsqueeze", "Where", "Xor",
}  # fmt: skip


def known_sizes(value: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    """The shape of a value if all its sizes are known."""
    kind = value.type.tensor_type
    if not kind.HasField("shape") or not all(d.HasField("dim_value") for d in kind.shape.dim):
        return None
    return tuple(d.dim_value for d in kind.shape.dim)


class KnownValues:
    """Values of a graph, and of those around it, that depend on constants and sizes only."""

    def __init__(self, graph: onnx.GraphProto, outer: "KnownValues | None" = None) -> None:
        self._evaluations: Iterator[int] = count() if outer is None else outer._evaluations
        self._tensors: Inherited[onnx.TensorProto] = ChainMap() if outer is None else outer._tensors.new_child()
        self._sizes: Inherited[tuple[int, ...]] = ChainMap() if outer is None else outer._sizes.new_child()
        self._makers: Inherited[onnx.NodeProto] = ChainMap() if outer is None else outer._makers.new_child()
        self._results: Inherited[NDArray[np.generic] | None] = (
            ChainMap() if outer is None else outer._results.new_child()
        )
        self._tensors.update((t.name, t) for t in graph.initializer)
        for value in (*graph.input, *graph.value_info):
            if (sizes := known_sizes(value)) is not None:
                self._sizes[value.name] = sizes
        # In the order of the file, which a valid file has: operands come first.
        for node in graph.node:
            read = (*node.input, *(v for g in graphs_of(node) for v in captured_values(g)))
            if node.domain in ("", "ai.onnx") and all(self._is_given(node, v) for v in read):
                self._makers.update(dict.fromkeys(node.output, node))

    def _is_given(self, node: onnx.NodeProto, operand: str) -> bool:
        return self.is_known(operand) or (node.op_type in _SIZES and operand in self._sizes)

    def is_known(self, name: str) -> bool:
        """Whether a value depends on constants and sizes only."""
        return not name or name in self._tensors or name in self._makers

    def value(self, name: str) -> NDArray[np.generic] | None:
        """A value; None if it is not known, or if computing it would exceed the limits."""
        if name in self._tensors:
            return _stored(self._tensors[name])
        pending = [name]
        while pending:
            maker = self._makers.get(pending[-1])
            if maker is None or pending[-1] in self._results:
                pending.pop()
                continue
            operands = () if maker.op_type in _SIZES else maker.input
            missing = [v for v in operands if v in self._makers and v not in self._results]
            if not missing:
                within = next(self._evaluations) < _MOST_NODES
                self._results[pending[-1]] = self._evaluate(maker) if within else None
            pending += missing
        return self._results.get(name)

    def _evaluate(self, node: onnx.NodeProto) -> NDArray[np.generic] | None:
        """The result of a node whose operands are evaluated."""
        if node.op_type not in _EVALUATED or graphs_of(node) or len(node.output) != 1:
            return None
        # Only the shapes of the values that Shape reads are wanted; they take no memory.
        feeds = {v: self._shaped(v) if node.op_type in _SIZES else self._operand(v) for v in node.input if v}
        operands = {v: a for v, a in feeds.items() if a is not None}
        large = node.op_type in _SPREADING and _is_large(operands.get(node.input[-1]))
        if large or len(operands) < len(feeds):
            return None
        # It takes 15 ms to load, and few models have conditions.
        from onnx.reference import ReferenceEvaluator

        inputs = [onnx.ValueInfoProto(name=v) for v in feeds]
        part = onnx.helper.make_graph([node], "value", inputs, [onnx.ValueInfoProto(name=node.output[0])])
        try:
            model = onnx.helper.make_model(part, opset_imports=[onnx.helper.make_opsetid("", _OPSET)])
            result = np.asarray(ReferenceEvaluator(model).run(None, operands)[0])
        except Exception:  # noqa: BLE001  # the evaluator raises many classes; the value is then not known
            return None
        return result if result.size <= _MOST_VALUES else None

    def _shaped(self, name: str) -> NDArray[np.generic] | None:
        """A value of the shape of another."""
        return np.broadcast_to(np.float32(0), self._sizes[name]) if name in self._sizes else self._operand(name)

    def _operand(self, name: str) -> NDArray[np.generic] | None:
        """A constant or a result of at most `_MOST_VALUES` elements."""
        tensor = self._tensors.get(name)
        array = self._results.get(name) if tensor is None else _stored(tensor)
        return array if array is not None and array.size <= _MOST_VALUES else None


def _stored(tensor: onnx.TensorProto) -> NDArray[np.generic] | None:
    """A stored tensor; None if it is damaged, which a later check reports."""
    try:
        return numpy_helper.to_array(tensor)
    except Exception:  # noqa: BLE001  # the library raises many classes
        return None


def _is_large(sizes: NDArray[np.generic] | None) -> bool:
    return sizes is None or float(np.prod(np.abs(sizes.astype(np.float64)))) > _MOST_VALUES
