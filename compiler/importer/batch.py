"""Models of a fixed batch as models of one image: the program then runs once for each image.

Every operator must treat the images of a batch alike and apart, which a table of operators says, and every size that
holds the batch must become 1. What is left as it is, the fold refuses because of its batch size.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import numpy_helper

from intloom.compiler.importer.contributed import mark_contributed
from intloom.compiler.importer.shapes import infer_shapes

_ELEMENTWISE = frozenset((
    "Abs", "Add", "Cast", "Clip", "DequantizeLinear", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid",
    "HardSwish", "Identity", "LeakyRelu", "Log", "Max", "Min", "Mish", "Mul", "Neg", "Pow", "PRelu",
    "QuantizeLinear", "Reciprocal", "Relu", "Round", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Sub", "Sum",
    "Tanh", "Where", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu",
))  # fmt: skip
_IMAGES = frozenset((
    "AveragePool", "BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "DepthToSpace",
    "GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization", "LRN", "MatMul", "MatMulInteger", "MaxPool",
    "QLinearAveragePool", "QLinearConv", "QLinearGlobalAveragePool", "QLinearMatMul", "Resize", "SpaceToDepth",
    "Upsample",
))  # fmt: skip
_AXIS = {
    "Softmax": -1, "LogSoftmax": -1, "LayerNormalization": -1, "Concat": 0, "Split": 0, "Gather": 0, "Flatten": 1,
    "ArgMax": 0, "ArgMin": 0, "QLinearConcat": 0, "QLinearSoftmax": -1,
}  # fmt: skip
"""Operators along one axis, with its default."""
_AXES = {"ReduceMean": 1, "ReduceSum": 1, "ReduceMax": 1, "ReduceMin": 1, "Squeeze": 1, "Unsqueeze": 1, "Slice": 3}
"""Operators along several axes, and the operand that names them in newer opsets."""
_GEMM_WEIGHTS = {"Gemm": 1, "QGemm": 3}
_SIZES = {"Reshape": 1, "Expand": 1, "Resize": 3}
"""The operand that gives the sizes of the result."""


def one_image(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model for one image, if all inputs are batches of one size above 1 whose images stay apart; else itself."""
    stored = {t.name for t in proto.graph.initializer}
    sizes = {_leading(v) for v in proto.graph.input if v.name not in stored}
    if len(sizes) != 1 or (batch := sizes.pop()) < 2:
        return proto
    try:
        return _one_of(proto, stored, batch) or proto
    except Exception:  # noqa: BLE001  # ONNX's checker and inference raise many classes; the import reports what is wrong
        return proto


def _one_of(proto: onnx.ModelProto, stored: set[str], batch: int) -> onnx.ModelProto | None:
    """The model for one image of a batch, unless images meet."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    # Before inference, which reads operands without a check that they exist; outputs need no shapes here.
    del made.graph.output[:]
    onnx.checker.check_model(made)
    made.graph.output.extend(proto.graph.output)
    graph = _Graph.of(proto.graph, _shapes(proto))
    for value in made.graph.input:
        if value.name not in stored:
            value.type.tensor_type.shape.dim[0].dim_value = 1
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    # Without those of constants, whose shapes inference reads here first.
    del made.graph.value_info[:]
    _set_sizes(made.graph, graph.constants, batch)
    return made if graph.stays_apart(_shapes(made), batch) else None


def _leading(value: onnx.ValueInfoProto) -> int:
    """The first of at least two dimensions; 0 if it is open."""
    dims = value.type.tensor_type.shape.dim
    return dims[0].dim_value if len(dims) > 1 else 0


def _shapes(proto: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """The inferred shapes of a model's values."""
    marked = onnx.ModelProto()
    marked.CopyFrom(proto)
    mark_contributed(marked)
    graph = infer_shapes(marked).graph
    values = (*graph.input, *graph.value_info, *graph.output)
    return {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in values}


def _set_sizes(graph: onnx.GraphProto, constants: Mapping[str, onnx.TensorProto], batch: int) -> None:
    """Replace the batch in constant sizes of results; each user gets a constant of its own."""
    for node in graph.node:
        at = _SIZES.get(node.op_type, len(node.input))
        tensor = constants.get(node.input[at]) if len(node.input) > at else None
        sizes = numpy_helper.to_array(tensor).copy() if tensor is not None else None
        if sizes is not None and sizes.ndim == 1 and sizes.size and sizes[0] == batch:
            sizes[0] = 1
            name = f"{node.output[0]}/one_image"
            graph.initializer.append(numpy_helper.from_array(sizes, name))
            node.input[at] = name


def _constants(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    yield from ((t.name, t) for t in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant":
            yield from ((node.output[0], a.t) for a in node.attribute if a.name == "value")


@dataclass(frozen=True, eq=False)
class _Graph:
    """A graph with the shapes of its values for the whole batch."""

    nodes: list[onnx.NodeProto]
    """Those that depend on an input."""
    outputs: list[str]
    shapes: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, onnx.TensorProto]
    fixed: frozenset[str]
    """Values that depend on no input."""

    @classmethod
    def of(cls, graph: onnx.GraphProto, shapes: Mapping[str, tuple[int, ...]]) -> "_Graph":
        """The graph, whose nodes are in order."""
        constants = dict(_constants(graph))
        fixed = {"", *constants}
        nodes = []
        for node in graph.node:
            if fixed.issuperset(node.input):
                fixed.update(node.output)
            else:
                nodes.append(node)
        return cls(nodes, [o.name for o in graph.output], shapes, constants, frozenset(fixed))

    def stays_apart(self, single: Mapping[str, tuple[int, ...]], batch: int) -> bool:
        """Whether each image of a result depends on the same image of the operands only; `single`: shapes of one."""
        values = [name for node in self.nodes for name in node.output if name]
        known = all(name in self.shapes and name in single for name in (*values, *self.outputs))
        return (
            known
            and all(self.shapes[name] == (batch, *single[name][1:]) and single[name][:1] == (1,) for name in values)
            and all(map(self._apart, self.nodes))
        )

    def _apart(self, node: onnx.NodeProto) -> bool:
        kind = node.op_type
        if kind in _AXIS:
            # An embedding's axis is that of its table.
            embeds = kind == "Gather" and node.input[0] in self.fixed
            return embeds or self._inside(node, [_attribute(node, "axis", _AXIS[kind])])
        if kind in _AXES:
            return self._inside(node, self._axes(node, _AXES[kind]))
        if kind == "Transpose":
            return bool(_attribute(node, "perm", [1])[0] == 0)
        if kind in ("Gemm", "QGemm"):
            return not _attribute(node, "transA", 0) and node.input[_GEMM_WEIGHTS[kind]] in self.fixed
        if kind == "Pad":
            pads = self._values(node, "pads", 1)
            return bool(pads) and pads[0] == pads[len(pads) // 2] == 0
        return kind in _ELEMENTWISE or kind in _IMAGES or (kind == "Reshape" and node.input[1] in self.fixed)

    def _axes(self, node: onnx.NodeProto, operand: int) -> list[int]:
        """The axes; without any, the batch."""
        return self._values(node, "axes", operand) or [0]

    def _values(self, node: onnx.NodeProto, name: str, operand: int) -> list[int]:
        """An attribute of older opsets that newer ones have as a constant operand."""
        tensor = self.constants.get(node.input[operand]) if len(node.input) > operand else None
        if tensor is not None:
            return [int(v) for v in numpy_helper.to_array(tensor).reshape(-1)]
        return list(_attribute(node, name, []))

    def _inside(self, node: onnx.NodeProto, axes: list[int]) -> bool:
        """Whether the axes leave out the batch."""
        rank = len(self.shapes[next(v for v in node.input if v not in self.fixed)])
        return all(axis % (rank + (node.op_type == "Unsqueeze") * len(axes)) > 0 for axis in axes)


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)
