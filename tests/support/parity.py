"""Compares a folded model, run by the golden model, with onnxruntime: every integer tensor, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from compiler.frontend import FoldedModel, Quant, fold_model
from compiler.importer import from_proto
from compiler.ir import IntGraph
from hw.spec.arith import Match
from sim.golden import run_graph

Array = NDArray[Any]

ONE_IN = 10_000
"""Where onnxruntime computes a layer in float, at most one value in so many may differ."""


@dataclass(frozen=True)
class Parity:
    """What a comparison saw."""

    folded: FoldedModel
    tensors: int
    elements: int
    different: dict[str, int]
    """Differing bytes of each tensor that differs."""
    largest: int
    """Largest difference."""


def run_onnxruntime(
    model: bytes, feeds: dict[str, Array], names: list[str], *, optimised: bool = True
) -> dict[str, Array]:
    """Some values of a model, by onnxruntime with its default optimisations or with none."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    wanted = {i.name for i in session.get_inputs()}
    return dict(zip(names, session.run(names, {k: v for k, v in feeds.items() if k in wanted}), strict=True))


def random_feeds(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    """Random inputs: floats from 0 to 1, or any bytes."""
    noise = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    stored = {t.name for t in model.graph.initializer}
    for value in (v for v in model.graph.input if v.name not in stored):
        shape = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        feeds[value.name] = (
            noise.random(shape, dtype=np.float32) if kind == np.float32 else noise.integers(0, 255, shape).astype(kind)
        )
    return feeds


def to_internal(values: Array, quant: Quant, shape: tuple[int, ...]) -> NDArray[np.int8]:
    """Floats or stored integers as int8 values of the integer graph."""
    if values.dtype == np.float32:
        low, high = (0, 255) if quant.unsigned else (-128, 127)
        values = np.clip(np.rint(values / np.float32(quant.scale)) + quant.zero_point, low, high)
    return (values.astype(np.int32) - 128 * quant.unsigned).astype(np.int8).reshape(shape)


def to_float(values: NDArray[np.int8], quant: Quant) -> NDArray[np.float32]:
    """Values of the integer graph as the floats they stand for, in the model's shape."""
    stored = values.astype(np.int32) + 128 * quant.unsigned - quant.zero_point
    return (stored.astype(np.float32) * np.float32(quant.scale)).reshape(quant.shape)


def graph_inputs(folded: FoldedModel, feeds: dict[str, Array]) -> dict[str, NDArray[np.int8]]:
    """The integer graph's inputs for a model's inputs."""
    values = dict(feeds)
    names = [q.source for q in folded.input_quant.values() if q.source not in feeds]
    if folded.host_head is not None:
        values.update(run_onnxruntime(folded.host_head, feeds, names))
    return {n: to_internal(values[q.source], q, folded.graph.tensors[n].shape) for n, q in folded.input_quant.items()}


def run_folded(folded: FoldedModel, feeds: dict[str, Array], match: Match = Match.ORT) -> dict[str, Array]:
    """The model's outputs by head, golden model and tail."""
    made = run_graph(folded.graph, graph_inputs(folded, feeds), match=match)
    values = dict(feeds)
    for name, quant in folded.output_quant.items():
        stored = made[name].astype(np.int32) + 128 * quant.unsigned
        values[quant.stored] = stored.astype(np.uint8 if quant.unsigned else np.int8).reshape(quant.shape)
        if quant.source != quant.stored:
            values[quant.source] = to_float(made[name], quant)
    if folded.host_tail is not None:
        names = [o.name for o in onnx.ModelProto.FromString(folded.host_tail).graph.output]
        values.update(run_onnxruntime(folded.host_tail, values, names))
    return values


def compare(model: onnx.ModelProto, seed: int, match: Match = Match.ORT) -> Parity:
    """Fold a model, run it on random inputs and compare every integer tensor that both sides have."""
    folded = fold_model(from_proto(onnx.ModelProto.FromString(model.SerializeToString()), name="model"), match=match)
    feeds = random_feeds(model, seed)
    ours = run_graph(folded.graph, graph_inputs(folded, feeds), match=match, keep=True)
    made = {o for n in model.graph.node for o in n.output}
    names = [n for n in ours if n in made]
    shown = onnx.ModelProto.FromString(model.SerializeToString())
    present = {o.name for o in model.graph.output}
    shown.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in present)
    theirs = run_onnxruntime(shown.SerializeToString(), feeds, names, optimised=match is Match.ORT)
    different, largest = {}, 0
    for name in names:
        offset = 128 if theirs[name].dtype == np.uint8 else 0
        gap = np.abs((theirs[name].astype(np.int32) - offset).reshape(ours[name].shape) - ours[name])
        if gap.any():
            different[name], largest = int(np.count_nonzero(gap)), max(largest, int(gap.max()))
    return Parity(folded, len(names), sum(ours[n].size for n in names), different, largest)


def behind_float_kernels(model: onnx.ModelProto) -> set[str]:
    """Values that depend on a ConvTranspose, which onnxruntime has no integer kernel for and computes in float."""
    behind: set[str] = set()
    for node in model.graph.node:
        if node.op_type == "ConvTranspose" or behind & set(node.input):
            behind.update(node.output)
    return behind


def assert_equal(model: onnx.ModelProto, seed: int) -> Parity:
    """Every integer tensor equals onnxruntime's, and every output of the untouched model equals ours.

    What depends on a layer that onnxruntime computes in float is judged layer by layer instead.
    """
    found = compare(model, seed)
    assert found.tensors > 0
    behind = behind_float_kernels(model)
    wrong = {name: count for name, count in found.different.items() if name not in behind}
    assert not wrong, f"{wrong} of {found.elements} bytes differ, by up to {found.largest}"
    if behind:
        assert assert_layers_close(model, seed) > 0
    feeds = random_feeds(model, seed)
    names = [o.name for o in model.graph.output if o.name not in behind]
    expected = run_onnxruntime(model.SerializeToString(), feeds, names)
    ours = run_folded(found.folded, feeds)
    for name in names:
        np.testing.assert_array_equal(ours[name], expected[name], err_msg=f"output {name}")
    return found


def assert_layers_close(model: onnx.ModelProto, seed: int) -> int:
    """Each layer alone, on onnxruntime's own inputs, differs by one at most and hardly ever; gives their number."""
    folded = fold_model(from_proto(onnx.ModelProto.FromString(model.SerializeToString()), name="m"))
    made = {o for n in model.graph.node for o in n.output}
    names = [n for n in folded.graph.tensors if n in made]
    shown = onnx.ModelProto.FromString(model.SerializeToString())
    present = {o.name for o in model.graph.output}
    shown.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in present)
    theirs = run_onnxruntime(shown.SerializeToString(), random_feeds(model, seed), names)
    for name in names:
        offset = 128 if theirs[name].dtype == np.uint8 else 0
        shape = folded.graph.tensors[name].shape
        theirs[name] = (theirs[name].astype(np.int16) - offset).astype(np.int8).reshape(shape)
    layers = [n for n in folded.graph.nodes if set(n.inputs) <= set(names) and n.output in names]
    for node in layers:
        tensors = {n: folded.graph.tensors[n] for n in (*node.inputs, node.output)}
        part = IntGraph("layer", tensors, (node,), tuple(dict.fromkeys(node.inputs)), (node.output,))
        ours = run_graph(part, {n: theirs[n] for n in node.inputs}, match=Match.ORT)[node.output].astype(np.int32)
        gap = np.abs(ours - theirs[node.output])
        # A table behind the convolution may widen a difference of one.
        limit = 1 if getattr(node, "table", None) is None else 3
        assert gap.max() <= limit, node.name
        assert np.count_nonzero(gap) <= gap.size // ONE_IN + 1, node.name
    return len(layers)
