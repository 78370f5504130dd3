"""Layers that cost most accuracy: each layer alone is computed in float, and the error of the outputs is compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.compiler.reference import open_session

_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(frozen=True)
class LayerCost:
    """Share of the quantized model's squared output error that disappears if one layer is computed in float."""

    layer: str
    share: float


def layer_costs(
    floats: onnx.ModelProto,
    quantized: onnx.ModelProto,
    tensors: Sequence[NDArray[np.float32]],
    report: Callable[[int, int], None],
) -> list[LayerCost]:
    """The cost of every layer with weights of a model in QDQ form, the largest first."""
    wanted = _run(floats, tensors)
    whole = _error(wanted, _run(quantized, tensors))
    names = [n.name for n in quantized.graph.node if n.op_type in _WEIGHTED and _quantized_inputs(quantized, n)]
    costs = []
    for done, name in enumerate(names):
        report(done, len(names))
        error = _error(wanted, _run(with_float_layer(floats, quantized, name), tensors))
        costs.append(LayerCost(name, 1 - error / whole if whole else 0.0))
    report(len(names), len(names))
    return sorted(costs, key=lambda c: -c.share)


def with_float_layer(floats: onnx.ModelProto, quantized: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The quantized model with the float weights of one layer, and without rounding of its result."""
    copy = onnx.ModelProto()
    copy.CopyFrom(quantized)
    makers = {o: n for n in copy.graph.node for o in n.output}
    original = {i.name: i for i in floats.graph.initializer}
    sizes = {i.name: list(i.dims) for i in copy.graph.initializer}
    layer = next(n for n in copy.graph.node if n.name == name)
    theirs = next((n for n in floats.graph.node if n.name == name), None)
    for position, given in enumerate(layer.input[1:], 1):
        source = theirs.input[position] if theirs is not None and position < len(theirs.input) else ""
        if given not in makers or makers[given].op_type != "DequantizeLinear" or source not in original:
            continue
        # Weights of channels that the quantizer has copied have other sizes and stay quantized.
        size = list(original[source].dims)
        if sizes.get(makers[given].input[0], size) == size:
            # The quantizer gives the original name to the value after DequantizeLinear.
            layer.input[position] = f"float {source}"
            copy.graph.initializer.add().CopyFrom(original[source])
            copy.graph.initializer[-1].name = layer.input[position]
    if theirs is not None and theirs.output[0] != (result := layer.output[0]):
        _restore_relu(floats, copy, layer, theirs.output[0], result)
    _skip_pair(copy, layer.output[0])
    return copy


def _restore_relu(
    floats: onnx.ModelProto, copy: onnx.ModelProto, layer: onnx.NodeProto, original: str, result: str
) -> None:
    """Add the ReLU that the quantizer removed, because rounding to its range does the same."""
    for node in floats.graph.node:
        if node.op_type == "Relu" and node.input[0] == original and node.output[0] == result:
            layer.output[0] = f"float {original}"
            relu = onnx.helper.make_node("Relu", [layer.output[0]], [result])
            at = next(i for i, n in enumerate(copy.graph.node) if n.name == layer.name)
            copy.graph.node.insert(at + 1, relu)
            _skip_pair(copy, result)


def _skip_pair(model: onnx.ModelProto, name: str) -> None:
    """Pass a value to its consumers without its QuantizeLinear and DequantizeLinear."""
    rounded = {n.output[0] for n in model.graph.node if n.op_type == "QuantizeLinear" and n.input[0] == name}
    restored = {n.output[0] for n in model.graph.node if n.op_type == "DequantizeLinear" and n.input[0] in rounded}
    for node in model.graph.node:
        for position, given in enumerate(node.input):
            if given in restored:
                node.input[position] = name


def _quantized_inputs(model: onnx.ModelProto, layer: onnx.NodeProto) -> bool:
    made = {o for n in model.graph.node if n.op_type == "DequantizeLinear" for o in n.output}
    return len(layer.input) > 1 and layer.input[1] in made


def _run(model: onnx.ModelProto, tensors: Sequence[NDArray[np.float32]]) -> list[list[NDArray[Any]]]:
    session = open_session(model.SerializeToString())
    (given,) = session.get_inputs()
    return [session.run(None, {given.name: tensor}) for tensor in tensors]


def _error(wanted: Sequence[Sequence[NDArray[Any]]], got: Sequence[Sequence[NDArray[Any]]]) -> float:
    """Sum over the outputs of the mean squared error, relative to the output's power: outputs have different units."""
    pairs = ((a, b) for rows in zip(wanted, got, strict=True) for a, b in zip(*rows, strict=True))
    return sum(float(np.square(a - b, dtype=np.float64).mean() / (np.square(a).mean() + 1e-12)) for a, b in pairs)
