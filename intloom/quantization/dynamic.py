"""Conversion of a dynamically quantized model to the float model that it approximates.

onnxruntime's dynamic quantization writes `DynamicQuantizeLinear -> ConvInteger -> Cast -> Mul(scales) -> [Add(bias)]`,
with int8 weights; its optimizer fuses chains of a MatMulInteger to one operator. Their real values go into the float
model. Static quantization then finds the same int8 weights again, because the largest weight of each scale is 127. Two
kinds of weights get finer scales instead: those before a BatchNormalization, which preprocessing folds into them, and
those with one scale in a model that also has weights with a scale per channel.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from intloom.common.errors import UnsupportedError
from intloom.compiler.refusals import Refusal

Array = NDArray[Any]
_FLOAT_OPS = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}
_MOVEMENTS = frozenset({"Gather", "Transpose", "Reshape", "Squeeze", "Unsqueeze"})
_DYNAMIC, _RECURRENT = "DynamicQuantizeLinear", "DynamicQuantizeLSTM"
_FUSED = {"DynamicQuantizeMatMul": (2, 3, 4), "MatMulIntegerToFloat": (3, 5, 6)}
"""Positions of scale and zero point of the weights, operand 1, and of a float bias."""


def is_dynamic(operators: Iterable[str]) -> bool:
    """Whether the operators are those of a dynamically quantized model, which computes scales when it runs."""
    kinds = set(operators)
    return not kinds.isdisjoint((_DYNAMIC, _RECURRENT, *_FUSED)) and "QuantizeLinear" not in kinds


@dataclass
class _Graph:
    """The model's nodes and constants during the conversion."""

    nodes: list[onnx.NodeProto]
    constants: dict[str, Array]
    outputs: frozenset[str]

    def reader(self, value: str) -> onnx.NodeProto | None:
        """The only node that reads `value`, or None."""
        readers = [n for n in self.nodes if value in n.input]
        return readers[0] if len(readers) == 1 and value not in self.outputs else None

    def other(self, node: onnx.NodeProto, value: str) -> Array | None:
        """The constant operand of a node that also reads `value`, or None."""
        names = [name for name in node.input if name != value]
        return self.constants.get(names[0]) if len(names) == 1 else None

    def float_bias(self, added: onnx.NodeProto, value: str) -> Array | None:
        """The constant before Div, Floor, Cast and Reshape that old quantizers add to the sums of a convolution."""
        makers = {name: n for n in self.nodes for name in n.output}
        (name,) = [v for v in added.input if v != value] or ("",)
        while name in makers and makers[name].op_type in ("Reshape", "Cast", "Floor", "Round", "Div"):
            name = makers[name].input[0]
        return self.constants.get(name)


def float_model(model: onnx.ModelProto) -> tuple[onnx.ModelProto, bool]:
    """The float model, and whether any weight has one scale for each channel.

    Raises
    ------
    UnsupportedError
        Weights are not constant, or the chain after an integer operator has another form.
    """
    stored = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    graph = _Graph(list(model.graph.node), stored, frozenset(o.name for o in model.graph.output))
    renamed = _remove_dynamic(graph)
    _dequantize_tables(graph)
    per_channel = False
    for node in [n for n in graph.nodes if n.op_type in _FLOAT_OPS]:
        per_channel |= _convert(graph, node)
    for node in [n for n in graph.nodes if n.op_type in _FUSED]:
        per_channel |= _convert_fused(graph, node)
    for node in [n for n in graph.nodes if n.op_type == _RECURRENT]:
        _convert_recurrent(graph, node)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:], made.graph.initializer[:], made.graph.value_info[:]
    for node in graph.nodes:
        for position, name in enumerate(node.input):
            node.input[position] = renamed.get(name, name)
    read = {name for node in graph.nodes for name in node.input} | graph.outputs
    made.graph.node.extend(graph.nodes)
    made.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in graph.constants.items() if n in read)
    return made, per_channel


def _remove_dynamic(graph: _Graph) -> dict[str, str]:
    """Remove the nodes that compute scales: values stay float, with scale 1 and zero point 0. Return the new names.

    Products of constant scales and reshaped biases become constants.
    """
    renamed = {}
    for node in [n for n in graph.nodes if n.op_type == _DYNAMIC]:
        graph.nodes.remove(node)
        values, scale, zero = (*node.output, "", "")[:3]
        renamed[values] = node.input[0]
        graph.constants |= {scale: np.float32(1), zero: np.uint8(0)}
    for node in [n for n in graph.nodes if n.op_type == "Reshape" and all(v in graph.constants for v in n.input)]:
        graph.nodes.remove(node)
        array, shape = (graph.constants[name] for name in node.input)
        graph.constants[node.output[0]] = array.reshape([int(size) for size in shape])
    for node in _products(graph):
        graph.nodes.remove(node)
        graph.constants[node.output[0]] = np.multiply(*(graph.constants[name] for name in node.input))
    return renamed


def _dequantize_tables(graph: _Graph) -> None:
    """Store embedding tables as real numbers, where movements of their integers end in a DequantizeLinear.

    onnxruntime's static quantizer does not end for a float model with a movement after such a DequantizeLinear.
    """
    makers = {name: n for n in graph.nodes for name in n.output}
    for node in [n for n in graph.nodes if n.op_type == "DequantizeLinear"]:
        first = last = makers.get(node.input[0])
        while first is not None and first.op_type in _MOVEMENTS and first.input[0] in makers:
            first = makers[first.input[0]]
        if first is None or last is None or first.op_type not in _MOVEMENTS:
            continue
        table, scale, zero = (graph.constants.get(v) for v in (first.input[0], *node.input[1:], "")[:3])
        if table is None or scale is None or scale.size != 1:
            continue
        first.input[0] = f"{node.output[0]}/table"
        graph.constants[first.input[0]] = (table.astype(np.float32) - np.float32(0 if zero is None else zero)) * scale
        last.output[0] = node.output[0]
        graph.nodes.remove(node)


def _products(graph: _Graph) -> Iterator[onnx.NodeProto]:
    """Products of two constants: input scale times weight scale."""
    for node in list(graph.nodes):
        if node.op_type == "Mul" and all(name in graph.constants for name in node.input):
            yield node


def _convert(graph: _Graph, node: onnx.NodeProto) -> bool:
    """Replace an integer operator and its chain by a float operator; return whether it has several weight scales."""
    weights = graph.constants.get(node.input[1])
    early = graph.reader(node.output[0])
    early = early if early is not None and (early.op_type, node.op_type) == ("Add", "ConvInteger") else None
    cast = graph.reader(node.output[0] if early is None else early.output[0])
    early_bias = None if early is None else graph.float_bias(early, node.output[0])
    product = graph.reader(cast.output[0]) if cast is not None and cast.op_type == "Cast" else None
    scale = None if cast is None or product is None else graph.other(product, cast.output[0])
    known = weights is not None and scale is not None and (early is None) == (early_bias is None)
    if not known or cast is None or product is None or product.op_type != "Mul":
        raise _unsupported(node, "constant weights, a Cast and a Mul by scales")
    assert weights is not None  # known
    assert scale is not None
    zero = graph.constants.get(node.input[3]) if len(node.input) > 3 else None
    axis = 0 if node.op_type == "ConvInteger" else -1
    name = _real_weights(graph, node, (weights, scale, zero), axis)
    inputs, result = [node.input[0], name], product.output[0]
    bias = _bias(graph, product, weights.shape[axis]) if node.op_type == "ConvInteger" else None
    if early is not None and early_bias is not None:
        graph.constants[f"{name}/bias"] = early_bias.ravel()
        inputs.append(f"{name}/bias")
        graph.nodes.remove(early)
    elif bias is not None:
        added, array = bias
        graph.constants[f"{name}/bias"] = array.ravel()
        inputs.append(f"{name}/bias")
        result = added.output[0]
        graph.nodes.remove(added)
    made = helper.make_node(_FLOAT_OPS[node.op_type], inputs, [result], name=node.name)
    made.attribute.extend(node.attribute)
    graph.nodes[graph.nodes.index(node)] = made
    graph.nodes.remove(cast)
    graph.nodes.remove(product)
    return scale.size > 1


def _convert_fused(graph: _Graph, node: onnx.NodeProto) -> bool:
    """Replace a product that onnxruntime fused with what quantizes its operand, and with an Add of the bias."""
    inputs = [*node.input, *[""] * (7 - len(node.input))]
    weights, scale, zero = (graph.constants.get(inputs[i]) for i in (1, *_FUSED[node.op_type][:2]))
    if weights is None or scale is None or (zero is None and inputs[_FUSED[node.op_type][1]]):
        raise _unsupported(node, "constant weights")
    bias, result = inputs[_FUSED[node.op_type][2]], node.output[0]
    product = f"{result}/product" if bias else result
    weight = _real_weights(graph, node, (weights, scale, zero), -1)
    made = [helper.make_node("MatMul", [node.input[0], weight], [product], name=node.name)]
    if bias:
        made.append(helper.make_node("Add", [product, bias], [result], name=f"{node.name}/bias"))
    at = graph.nodes.index(node)
    graph.nodes[at : at + 1] = made
    return scale.size > 1


def _real_weights(graph: _Graph, node: onnx.NodeProto, stored: tuple[Array, Array, Array | None], axis: int) -> str:
    """Store weights as real numbers, from integers, scales and zero points; return the constant's name."""
    weights, scale, zero = stored
    values = (weights.astype(np.int32) - _along(zero, weights, axis)) * _along(scale, weights, axis)
    name = f"{node.output[0]}/weights"
    graph.constants[name] = values.astype(np.float32)
    return name


def _unsupported(node: onnx.NodeProto, needed: str) -> UnsupportedError:
    """The error for a node of another form."""
    message = f"node {node.name!r}: {node.op_type} must have {needed}: quantize the float original"
    return UnsupportedError(message, Refusal.DYNAMIC.number)


def _convert_recurrent(graph: _Graph, node: onnx.NodeProto) -> None:
    """Replace an LSTM with int8 weights, stored inputs first, by ONNX's own."""
    inputs = [*node.input, *[""] * (12 - len(node.input))]
    for weights, scale, zero in ((1, 8, 9), (2, 10, 11)):
        stored, scales, zeros = (graph.constants.get(inputs[i]) for i in (weights, scale, zero))
        if stored is None or scales is None:
            raise _unsupported(node, "constant weights")
        # Scales and zero points are those of a direction, or of each of its columns.
        form = (len(stored), 1, -1)
        zeros = np.zeros(1, np.int32) if zeros is None else zeros.astype(np.int32)
        values = (stored.astype(np.int32) - zeros.reshape(form)) * scales.reshape(form)
        inputs[weights] = f"{node.output[0]}/weights{weights}"
        graph.constants[inputs[weights]] = values.astype(np.float32).swapaxes(1, 2)
    made = helper.make_node("LSTM", inputs[:8], node.output, name=node.name)
    made.attribute.extend(node.attribute)
    graph.nodes[graph.nodes.index(node)] = made


def _bias(graph: _Graph, product: onnx.NodeProto, channels: int) -> tuple[onnx.NodeProto, Array] | None:
    """The Add of one constant per channel after the chain, and the constant."""
    added = graph.reader(product.output[0])
    if added is None or added.op_type != "Add":
        return None
    array = graph.other(added, product.output[0])
    if array is None or array.ndim < 2 or array.size != channels or array.shape[1] != channels:
        return None
    return added, array


def _along(values: Array | None, weights: Array, axis: int) -> Array:
    """A zero point or scale, reshaped to broadcast along the channel axis of the weights."""
    if values is None:
        return np.zeros((), np.int32)
    if values.size == 1:
        return values.reshape(()).astype(np.int32) if values.dtype.kind in "iu" else values.reshape(())
    form = [1] * weights.ndim
    form[axis] = -1
    shaped = values.reshape(form)
    return shaped.astype(np.int32) if values.dtype.kind in "iu" else shaped
