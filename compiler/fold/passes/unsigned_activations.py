"""Pass `unsigned_activations`: rewrite int8 activations to uint8 activations with the same real values.

onnxruntime on x86 computes a convolution of int8 activations in QDQ form in float, and one of uint8 activations in
integers. Every int8 activation therefore becomes uint8: the pass adds 128 to its zero points and to its constants.
Weights and biases stay. Zero points that the file leaves out become explicit, because onnxruntime fuses quantized
operators only where it finds their types. Weights of fewer than 8 bits become 8-bit weights, for which onnxruntime has
integer kernels.

An operator that the pass does not know keeps its int8 values: the pass converts them before and after it.

Runs after `constants`. Afterwards no known operator reads or produces an int8 activation. `Model.shifted` names the
values that are int8 in the file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from intloom.compiler.custom import find
from intloom.compiler.fold.patterns.data_movement import DATA_MOVEMENT
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, QUANTIZE
from intloom.compiler.importer import MICROSOFT, STANDARD, Constant, Model, OnnxNode, ValueType
from intloom.compiler.importer.model import NUMBERED_TYPES

_OFFSET = 128
_WIDER = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}

Pairs = tuple[tuple[int, int], ...]
"""Positions of values and of their zero points."""

_ONE, _TWO = ((0, 2),), ((0, 2), (3, 5))
_OPERANDS: Mapping[str, tuple[Pairs, int | None]] = {
    # operands, zero point of the result
    QUANTIZE: ((), 2),
    DEQUANTIZE: (_ONE, None),
    "QLinearConv": (_ONE, 7),
    "QLinearMatMul": (_TWO, 7),
    "ConvInteger": (_ONE, None),
    "MatMulInteger": (((0, 2), (1, 3)), None),
    "QGemm": (_ONE, 8),
    "QLinearAdd": (_TWO, 7),
    "QLinearMul": (_TWO, 7),
    "QLinearWhere": (((1, 3), (4, 6)), 8),
    **dict.fromkeys(("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearReduceMean"), (_ONE, 4)),
    **dict.fromkeys(("QLinearAveragePool", "QLinearGlobalAveragePool"), (_ONE, 4)),
}
_WEIGHTS = {"QLinearMatMul": 3, "MatMulInteger": 1}
"""Operands that are weights where they are constants."""
_ORDERED = (DATA_MOVEMENT - {"Pad"}) | {
    *("Concat", "Max", "Min", "Clip", "Pad", "Expand", "Tile", "Gather", "GatherElements", "GatherND"),
    *("DepthToSpace", "SpaceToDepth", "Where", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin"),
}
"""Operators whose results are some of their operands' values, whatever these stand for."""
_FORMING = frozenset({"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Identity", "Flatten"})
_MULTIPLIED = {"Conv": (1, 2), "ConvTranspose": (1, 2), "Gemm": (1, 2), "MatMul": (1,)}


def use_unsigned_activations(model: Model) -> Model:
    """Apply the pass."""
    return _Rewriter(model).rewrite()


def _is_known(model: Model, node: OnnxNode) -> bool:
    """Whether the pass can shift the int8 values of a node."""
    if node.domain not in (STANDARD, MICROSOFT):
        return find(node.domain, node.op) is not None  # its semantics are over the accelerator's int8
    if node.op in _ORDERED:
        return node.domain == STANDARD
    if node.op == "QLinearConcat":
        return all(model.constant(node.input(i)) is not None for i in _concat_zeros(node))
    if node.op not in _OPERANDS or any(v not in model.constants for v in _zeros(node)):
        return False
    return not node.integer("block_size", 0)


def _pairs(node: OnnxNode) -> Pairs:
    if node.op == "QLinearConcat":
        return tuple((i, i + 2) for i in range(2, len(node.inputs), 3))
    return _OPERANDS[node.op][0]


def _result_zero(node: OnnxNode) -> int | None:
    return 1 if node.op == "QLinearConcat" else _OPERANDS[node.op][1]


def _concat_zeros(node: OnnxNode) -> Iterable[int]:
    return (1, *range(4, len(node.inputs), 3))


def _zeros(node: OnnxNode) -> list[str]:
    """The given zero points of a node's operands and result."""
    pairs, result = _OPERANDS[node.op]
    positions = [zero for _, zero in pairs] + ([] if result is None else [result])
    return [node.input(p) for p in positions if node.input(p)]


@dataclass
class _Rewriter:
    """The rewritten nodes, constants and types."""

    model: Model
    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    types: dict[str, ValueType] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    """Types of the file's values, also where ONNX cannot infer them (after operators of other domains)."""
    shifted: set[str] = field(default_factory=set)
    converted: set[str] = field(default_factory=set)
    """Results of conversions."""

    def rewrite(self) -> Model:
        model = self.model
        captured = _captured(model)
        for name in model.inputs:
            self.dtypes[name] = model.dtype(name)
            if self.dtypes[name] == "int8" and name not in captured:
                self._shift(name)
        for node in model.nodes:
            self._note_types(node)
            if not _is_known(model, node):
                inputs = tuple(self._as_int8(v) for v in node.inputs)
                self.nodes.append(node if inputs == node.inputs else replace(node, inputs=inputs))
                continue
            self.nodes.append(self._known(node))
            for value in node.outputs:
                if self.dtypes.get(value) == "int8" and value not in captured:
                    self._shift(value)
                elif self.dtypes.get(value) == "int8":
                    self._restore(value)
        if self.nodes == list(model.nodes) and not self.shifted:
            return model
        made = model.with_nodes(self.nodes, constants=self.constants, types=self.types)
        return replace(made, shifted=frozenset(self.shifted))

    def _note_types(self, node: OnnxNode) -> None:
        """Determine the types of a node's results."""
        for value in node.outputs:
            self.dtypes[value] = self.model.dtype(value)
        if node.op in _OPERANDS or node.op == "QLinearConcat":
            at = _result_zero(node)
            if at is not None and node.input(at):
                self.dtypes[node.outputs[0]] = self.model.dtype(node.input(at))
            elif node.op == QUANTIZE:
                self.dtypes[node.outputs[0]] = NUMBERED_TYPES.get(node.integer("output_dtype", 0), "uint8")
        elif node.op in _ORDERED and not self.dtypes[node.outputs[0]]:
            moved = node.outputs if node.op == "Split" else node.outputs[:1]
            self.dtypes.update(dict.fromkeys(moved, self.dtypes.get(node.input(0), "")))

    def _shift(self, value: str) -> None:
        self.shifted.add(value)
        if value in self.model.types:
            self.types[value] = replace(self.model.types[value], dtype="uint8")

    def _known(self, node: OnnxNode) -> OnnxNode:
        """The node on uint8 values."""
        if node.domain not in (STANDARD, MICROSOFT):
            return node
        if node.op in _ORDERED:
            return self._ordered(node)
        if node.op == DEQUANTIZE and node.input(0) in self.model.constants:
            return self._dequantized_constant(node)
        inputs, attributes = list(node.inputs), dict(node.attributes)
        for value, zero in _pairs(node):
            weight = _WEIGHTS.get(node.op) == value and inputs[value] in self.model.constants
            kind = "" if weight else self._type(inputs[value])
            if kind == "int8":
                inputs[value] = self._as_uint8(inputs[value])
            self._set_zero(node, inputs, zero, kind)
        at, kind = _result_zero(node), self.dtypes.get(node.outputs[0], "")
        if at is not None:
            self._set_zero(node, inputs, at, kind)
        if node.op == QUANTIZE and kind in ("int8", "uint8"):
            attributes.pop("output_dtype", None)
        if tuple(inputs) == node.inputs and attributes == node.attributes:
            return node
        return replace(node, inputs=tuple(inputs), attributes=attributes)

    def _set_zero(self, node: OnnxNode, inputs: list[str], position: int, kind: str) -> None:
        """Make the zero point of an int8 value that of the uint8 value; make an omitted one of a QDQ node explicit."""
        explicit = kind == "uint8" and node.op in (QUANTIZE, DEQUANTIZE) and not node.input(position)
        if kind == "int8" or explicit:
            _set(inputs, position, self._zero(node, node.input(position), node.input(position - 1), kind))

    def _ordered(self, node: OnnxNode) -> OnnxNode:
        if self._type(node.input(0)) != "int8" and self.dtypes.get(node.outputs[0]) != "int8":
            return node
        inputs = [self._as_uint8(v) if self._type(v) == "int8" else v for v in node.inputs]
        if node.op == "Pad" and node.text("mode", "constant") == "constant" and not node.input(2):
            _set(inputs, 2, self._constant(f"{node.name}/zero/uint8", np.array(_OFFSET, np.uint8)))
        return replace(node, inputs=tuple(inputs))

    def _dequantized_constant(self, node: OnnxNode) -> OnnxNode:
        """Store a constant in 8 bits, as uint8 where it is an activation and as int8 or uint8 where it is a weight."""
        name, scale, zero = (node.input(i) for i in range(3))
        kind, steps = self.model.dtype(name), self.model.constant(scale)
        known = not node.integer("block_size", 0) and (not zero or zero in self.model.constants)
        narrow = known and kind in _WIDER
        if narrow:
            kind = _WIDER[kind]
        if kind == "int8" and steps is not None and steps.size == 1 and not self._is_weight(node.outputs[0]):
            return replace(node, inputs=(self._as_uint8(name), scale, self._zero(node, zero, scale, "int8")))
        if narrow:
            return replace(node, inputs=(self._widened(name), scale, *([self._widened(zero)] if zero else [])))
        return node

    def _is_weight(self, value: str) -> bool:
        """Whether an operator multiplies by a value or adds it as a bias."""
        for node in self.model.users(value):
            if any(node.input(i) == value for i in _MULTIPLIED.get(node.op, ())):
                return True
            if node.op in _FORMING and self._is_weight(node.outputs[0]):
                return True
        return False

    def _widened(self, name: str) -> str:
        kind = _WIDER[self.model.dtype(name)]
        return self._constant(f"{name}/{kind}", self.model.constants[name].array.astype(kind))

    def _type(self, value: str) -> str:
        return self.model.dtype(value) if value in self.model.constants else self.dtypes.get(value, "")

    def _zero(self, node: OnnxNode, given: str, scale: str, kind: str) -> str:
        """The explicit zero point of a value of a type of the file, as uint8."""
        offset = _OFFSET if kind == "int8" else 0
        if given:
            array = self.model.constants[given].array
            return self._constant(f"{given}/uint8", (array.astype(np.int16) + offset).astype(np.uint8))
        steps = None if node.op.endswith("Integer") else self.model.constant(scale)
        shape = () if steps is None else steps.shape
        return self._constant(f"{node.name}/{scale}/zero/{kind}", np.full(shape, offset, np.uint8))

    def _constant(self, name: str, array: object) -> str:
        values = np.asarray(array)
        self.constants[name] = Constant(values, str(values.dtype))
        return name

    def _as_uint8(self, value: str) -> str:
        """A value that is int8 in the file, as uint8."""
        if value in self.shifted:
            return value
        if value in self.model.constants:
            array = self.model.constants[value].array
            return self._constant(f"{value}/uint8", (array.astype(np.int16) + _OFFSET).astype(np.uint8))
        return self._convert(value, f"{value}/uint8", _OFFSET)

    def _as_int8(self, value: str) -> str:
        return self._convert(value, f"{value}/int8", -_OFFSET) if value in self.shifted else value

    def _restore(self, value: str) -> None:
        """Let a node produce uint8 under another name, and convert it to the value of the file after it."""
        made = f"{value}/uint8"
        self.converted.add(made)
        node = self.nodes.pop()
        self.nodes.append(replace(node, outputs=tuple(made if v == value else v for v in node.outputs)))
        self._convert(made, value, -_OFFSET)

    def _convert(self, value: str, target: str, offset: int) -> str:
        """Convert between int8 and uint8 by integer arithmetic."""
        if target not in self.converted:
            self.converted.add(target)
            kind, code = ("uint8", 2) if offset > 0 else ("int8", 3)
            wide, moved = f"{target}/wide", f"{target}/moved"
            by = self._constant(f"{target}/offset", np.array(offset, np.int32))
            self.nodes += [
                OnnxNode(f"{wide}/Cast", "Cast", (value,), (wide,), {"to": 6}),
                OnnxNode(f"{moved}/Add", "Add", (wide, by), (moved,)),
                OnnxNode(f"{target}/Cast", "Cast", (moved,), (target,), {"to": code}),
            ]
            self.types[target] = ValueType(kind, self.model.shape(value))
        return target


def _set(inputs: list[str], position: int, name: str) -> None:
    """Set an input; omitted inputs before it become empty."""
    inputs += [""] * (position + 1 - len(inputs))
    inputs[position] = name


def _captured(model: Model) -> set[str]:
    """Values that a subgraph (of If, Loop, Scan) reads by name."""
    return {v for n in model.nodes for v in n.captured}
