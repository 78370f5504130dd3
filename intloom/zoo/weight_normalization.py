"""Weight normalization for non-degenerate activations: scales random weights like training with batch normalization.

The graph runs once on synthetic images with a normalization after every layer. The measured statistics are folded
into weights and bias, as a trained batch normalization is folded for export.
"""

import zlib
from dataclasses import replace

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from intloom.compiler.reference import open_session
from intloom.images import synthetic_batch
from intloom.zoo.builder import IR_VERSION, OPSET, Builder, Layer

BATCH = 4
"""Images of the measurement."""
_LEAST_VARIANCE = 1e-6
_INDICES = 128
"""Different integers of an input: every vocabulary is larger."""


def normalize_weights(builder: Builder, measured: Builder) -> None:
    """Fold the statistics of `measured` into the layers of `builder`: the same network at the measurement size."""
    rng_seed = builder.seed
    statistics = _measure(measured)
    for layer, (mean, variance) in zip(builder.layers, statistics, strict=True):
        _fold(builder, layer, mean, variance, rng_seed)


def _fold(builder: Builder, layer: Layer, mean: NDArray[np.float64], variance: NDArray[np.float64], seed: int) -> None:
    weight = builder.weights[layer.weight]
    channels = weight.shape[layer.channel_axis]
    gain, offset = _targets(layer, channels, seed)
    factor = gain / np.sqrt(np.maximum(variance, _LEAST_VARIANCE))
    shape = [1] * weight.ndim
    shape[layer.channel_axis] = channels
    builder.weights[layer.weight] = (weight * factor.reshape(shape)).astype(np.float32)
    builder.weights[layer.bias] = (offset - mean * factor).astype(np.float32)


def _targets(layer: Layer, channels: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gain and offset of each channel, with a random spread around the layer's values."""
    # Seeded by the layer's name: a layer keeps its values when others are added. hash() would differ in each process.
    rng = np.random.default_rng([seed, zlib.crc32(layer.weight.encode()), 1])
    target = layer.target
    gain = target.spread * rng.uniform(0.7, 1.3, channels)
    offset = target.mean + target.spread * rng.normal(0.0, 0.3, channels)
    offset += target.slope * (np.arange(channels) % target.period)
    return gain, offset


def _measure(builder: Builder) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    model, names = _instrumented(builder)
    session = open_session(model.SerializeToString())
    values = session.run(names, {i.name: _input(builder, i) for i in builder.inputs})
    flat = [np.asarray(v, dtype=np.float64).reshape(-1) for v in values]
    return list(zip(flat[0::2], flat[1::2], strict=True))


def _input(builder: Builder, value: onnx.ValueInfoProto) -> NDArray[np.float32] | NDArray[np.int64]:
    """Synthetic images, or numbers that are valid indices and masks."""
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    if value.type.tensor_type.elem_type == TensorProto.INT64:
        return np.random.default_rng([builder.seed, len(value.name)]).integers(0, _INDICES, shape)
    return synthetic_batch(builder.batch, shape[2], shape[3], builder.seed, shape[1])


def _instrumented(builder: Builder) -> tuple[onnx.ModelProto, list[str]]:
    """The network for a batch, with each layer's output normalized to its target; outputs: all means and variances."""
    by_output = {layer.output: i for i, layer in enumerate(builder.layers)}
    weights = dict(builder.weights)
    nodes: list[onnx.NodeProto] = []
    for node in builder.nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        nodes.append(copy)
        index = by_output.get(node.output[0])
        if index is not None:
            copy.output[0] = f"raw_{index}"
            layer = builder.layers[index]
            nodes += _normalization(replace(layer, output=node.output[0]), index, builder.seed, weights)
    _trim(nodes, builder)
    names = [f"{kind}_{i}" for i in range(len(builder.layers)) for kind in ("mean", "variance")]
    graph = helper.make_graph(
        nodes,
        "statistics",
        builder.inputs,
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION), names


def _normalization(layer: Layer, i: int, seed: int, weights: dict[str, NDArray[np.float32]]) -> list[onnx.NodeProto]:
    """Nodes from `raw_i` to the layer's output, through `mean_i` and `variance_i`."""
    channels = weights[layer.weight].shape[layer.channel_axis]
    shape = [1] * layer.rank
    shape[layer.output_axis] = channels
    axes = [a for a in range(layer.rank) if not (layer.target.per_channel and a == layer.output_axis)]
    gain, offset = _targets(layer, channels, seed)
    weights[f"gain_{i}"] = gain.reshape(shape).astype(np.float32)
    weights[f"offset_{i}"] = offset.reshape(shape).astype(np.float32)
    weights[f"floor_{i}"] = np.array(_LEAST_VARIANCE, np.float32)
    make = helper.make_node
    return [
        make("ReduceMean", [f"raw_{i}"], [f"mean_{i}"], axes=axes, keepdims=1),
        make("Sub", [f"raw_{i}", f"mean_{i}"], [f"centered_{i}"]),
        make("Mul", [f"centered_{i}", f"centered_{i}"], [f"square_{i}"]),
        make("ReduceMean", [f"square_{i}"], [f"variance_{i}"], axes=axes, keepdims=1),
        make("Max", [f"variance_{i}", f"floor_{i}"], [f"safe_{i}"]),
        make("Sqrt", [f"safe_{i}"], [f"deviation_{i}"]),
        make("Div", [f"centered_{i}", f"deviation_{i}"], [f"unit_{i}"]),
        make("Mul", [f"unit_{i}", f"gain_{i}"], [f"scaled_{i}"]),
        make("Add", [f"scaled_{i}", f"offset_{i}"], [layer.output]),
    ]


def _trim(nodes: list[onnx.NodeProto], builder: Builder) -> None:
    """Remove the nodes after the last layer: their shapes are for a batch of 1, and nothing is measured there."""
    needed = {f"{kind}_{i}" for i in range(len(builder.layers)) for kind in ("mean", "variance")}
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.append(node)
    nodes[:] = reversed(kept)
