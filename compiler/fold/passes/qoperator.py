"""Pass `qoperator`: rewrite QOperator nodes to QDQ form.

QLinearConv, QLinearMatMul and the QLinear… operators of com.microsoft are one node each for what the QDQ form states
with several. In QDQ form, one set of lowerings serves both. Data movement of quantized values (MaxPool of uint8…) gets
the parameters of its input.

Runs after `constants`. Afterwards no supported QLinear… or QGemm operator is left, and the shapes of their results are
known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from intloom.common.errors import ModelError
from intloom.compiler.fold.patterns.data_movement import is_data_movement, pad_value
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, QUANTIZE, is_dequantize, is_quantize
from intloom.compiler.importer import MICROSOFT, STANDARD, Constant, Model, OnnxNode, infer

Parameters = tuple[str, str]
"""Names of a scale and a zero point."""


@dataclass(frozen=True)
class _Form:
    """The float operator of a QLinear… operator; each stored operand comes before its scale and zero point."""

    op: str
    operands: tuple[int, ...]
    """Positions of the stored operands; empty: those from the third input on."""
    result: int
    """Position of the result's scale, before its zero point."""
    weight_axis: int | None = None
    """Axis of the scales of the second operand."""
    bias: int | None = None
    """Position of an int32 bias."""


@dataclass
class _Rewriter:
    """The rewritten nodes and constants."""

    model: Model
    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    known: dict[str, Parameters] = field(default_factory=dict)
    """Scale and zero point of quantized values, from the nodes that produce them."""
    dequantized_values: set[str] = field(default_factory=set)
    """Results of the DequantizeLinear nodes that were added."""

    def dequantized(self, node: OnnxNode, stored: str, parameters: Parameters, axis: int | None = None) -> str:
        """Add a DequantizeLinear of an operand and return its float value."""
        value = f"{node.name}/{stored}/float"
        inputs = (stored, *parameters) if parameters[1] else (stored, parameters[0])
        attributes = {} if axis is None else {"axis": axis}
        # A node may read an operand twice: x * x.
        if value not in self.dequantized_values:
            self.dequantized_values.add(value)
            self.nodes.append(OnnxNode(f"{value}/DQ", DEQUANTIZE, inputs, (value,), attributes, origin=node.origins))
        return value

    def finish(self, node: OnnxNode, form: _Form, inputs: tuple[str, ...]) -> None:
        """Add the float operator and the QuantizeLinear after it."""
        attributes = {k: v for k, v in node.attributes.items() if k not in _OWN}
        stored = node.outputs[0]
        value = f"{stored}/float"
        float_node = OnnxNode(node.name, form.op, inputs, (value,), attributes, origin=node.origins, qoperator=node)
        self.nodes.append(float_node)
        self.quantized(node, value, stored, _pair(node, form.result))

    def quantized(self, node: OnnxNode, value: str, stored: str, parameters: Parameters) -> None:
        """Add a QuantizeLinear."""
        inputs = (value, *parameters) if parameters[1] else (value, parameters[0])
        self.nodes.append(OnnxNode(f"{stored}/Q", QUANTIZE, inputs, (stored,), {}, origin=node.origins))
        self.known[stored] = parameters


def _pair(node: OnnxNode, index: int) -> Parameters:
    return node.input(index), node.input(index + 1)


def _rewrite(r: _Rewriter, node: OnnxNode, form: _Form) -> None:
    axis = 1 - node.integer("transB", 0) if form.op == "Gemm" else form.weight_axis
    values = tuple(
        r.dequantized(node, node.input(at), _pair(node, at + 1), axis if number else None)
        for number, at in enumerate(form.operands or range(2, len(node.inputs), 3))
    )
    if form.bias is not None:
        values += _bias(r, node, node.input(form.bias), node.input(1), node.input(4))
    if form.op == "Gemm" and not node.input(form.result):
        r.nodes.append(OnnxNode(node.name, form.op, values, node.outputs, node.attributes, origin=node.origins))
    else:
        r.finish(node, form, values)


def _bias(r: _Rewriter, node: OnnxNode, stored: str, x_scale: str, w_scale: str) -> tuple[str, ...]:
    """Add a DequantizeLinear of an int32 bias, whose scale is the product of the operands' scales."""
    if not stored:
        return ()
    one, two = r.model.constant(x_scale), r.model.constant(w_scale)
    if one is None or two is None:
        return (stored,)
    if one.size != 1:
        raise ModelError(f"node {node.name!r}: its input must have one scale, not {one.size}: quantize it per tensor")
    scale = f"{node.name}/bias_scale"
    r.constants[scale] = Constant(
        (one.astype(np.float32).reshape(()) * two.astype(np.float32)).astype(np.float32), "float"
    )
    return (r.dequantized(node, stored, (scale, ""), axis=0),)


_OWN = ("channels_last", "opset")
"""Attributes that the float operators do not have."""
_FORMS: Mapping[tuple[str, str], _Form] = {
    (STANDARD, "QLinearConv"): _Form("Conv", (0, 3), 6, weight_axis=0, bias=8),
    (STANDARD, "QLinearMatMul"): _Form("MatMul", (0, 3), 6, weight_axis=-1),
    (MICROSOFT, "QGemm"): _Form("Gemm", (0, 3), 7, bias=6),
    (MICROSOFT, "QLinearAdd"): _Form("Add", (0, 3), 6),
    (MICROSOFT, "QLinearMul"): _Form("Mul", (0, 3), 6),
    (MICROSOFT, "QLinearSigmoid"): _Form("Sigmoid", (0,), 3),
    (MICROSOFT, "QLinearLeakyRelu"): _Form("LeakyRelu", (0,), 3),
    (MICROSOFT, "QLinearAveragePool"): _Form("AveragePool", (0,), 3),
    (MICROSOFT, "QLinearGlobalAveragePool"): _Form("GlobalAveragePool", (0,), 3),
    (MICROSOFT, "QLinearSoftmax"): _Form("Softmax", (0,), 3),
    (MICROSOFT, "QLinearConcat"): _Form("Concat", (), 0),
}


def rewrite_qoperators(model: Model) -> Model:
    """Apply the pass."""
    r = _Rewriter(model)
    r.known |= _input_parameters(model)
    for node in model.nodes:
        form = _FORMS.get((node.domain, node.op))
        if form is not None and not node.integer("channels_last", 0):
            _rewrite(r, node, form)
        elif is_data_movement(node) and (parameters := r.known.get(node.input(0))) is not None:
            moved = node if node.op != "Pad" else _float_pad(r, node, parameters)
            if moved is None:
                r.nodes.append(node)
            else:
                _rewrite_movement(r, moved, 1, parameters)
        elif node.op == "Concat" and not node.domain and (parameters := _common_parameters(r, node)) is not None:
            _rewrite_movement(r, node, len(node.inputs), parameters)
        else:
            r.nodes.append(node)
            if is_quantize(node):
                r.known[node.outputs[0]] = _pair(node, 1)
    if len(r.nodes) == len(model.nodes):
        return model
    return infer(model.with_nodes(r.nodes, constants=r.constants))


def _input_parameters(model: Model) -> dict[str, Parameters]:
    """Scale and zero point of 8-bit inputs: those of the first DequantizeLinear after data movement of the input."""
    parameters: dict[str, Parameters] = {}
    for value in model.inputs:
        reached = [value] if model.dtype(value) in ("int8", "uint8") else []
        for name in reached:
            for node in model.users(name):
                if is_dequantize(node):
                    parameters.setdefault(value, _pair(node, 1))
                elif is_data_movement(node) and node.input(0) == name:
                    reached += [out for out in node.outputs if out]
    return parameters


def _rewrite_movement(r: _Rewriter, node: OnnxNode, count: int, parameters: Parameters) -> None:
    """Rewrite movement of a node's first `count` operands to movement between DequantizeLinear and QuantizeLinear."""
    values = [r.dequantized(node, stored, parameters) for stored in node.inputs[:count]]
    floats = tuple(f"{stored}/float" if stored else "" for stored in node.outputs)
    r.nodes.append(replace(node, inputs=(*values, *node.inputs[count:]), outputs=floats, origin=node.origins))
    for made, stored in zip(floats, node.outputs, strict=True):
        if stored:
            r.quantized(node, made, stored, parameters)


def _common_parameters(r: _Rewriter, node: OnnxNode) -> Parameters | None:
    """Scale and zero point of all quantized operands; None if they are unknown or differ."""
    known = [r.known.get(value) for value in node.inputs]
    first = known[0]
    if first is None or r.model.constant(first[0]) is None:
        return None
    kinds = {r.model.dtype(value) for value in node.inputs}
    same = all(p is not None and all(_equal(r.model, a, b) for a, b in zip(first, p, strict=True)) for p in known)
    return first if same and len(kinds) == 1 else None


def _equal(model: Model, one: str, two: str) -> bool:
    a, b = model.constant(one), model.constant(two)
    return one == two or (a is not None and b is not None and np.array_equal(a, b))


def _float_pad(r: _Rewriter, node: OnnxNode, parameters: Parameters) -> OnnxNode | None:
    """Convert a Pad of quantized values to a Pad of floats; the default value is the integer zero."""
    scale, zero = r.model.constant(parameters[0]), r.model.constant(parameters[1])
    stored = pad_value(r.model, node)
    if scale is None or stored is None or scale.size != 1 or (zero is not None and zero.size != 1):
        return None
    offset = 0 if zero is None else int(zero.reshape(()))
    name = f"{node.name}/pad_value"
    r.constants[name] = Constant(np.array((stored - offset) * np.float32(scale.reshape(())), np.float32), "float")
    inputs = (*node.inputs[:2], name, *node.inputs[3:])
    return replace(node, inputs=inputs)
