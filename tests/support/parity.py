"""Compares a folded model, run by the golden model, with onnxruntime: every integer tensor, byte for byte."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.compiler.frontend import FoldedModel, fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.reference import open_session
from intloom.flow.float_kernels import LayerComparator, LayerComparison
from intloom.flow.host import HostSide, with_outputs
from intloom.flow.regions import all_inputs, run_regions
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.golden import run_graph

Array = NDArray[Any]


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
    model: bytes, feeds: dict[str, Array], names: list[str], *, optimized: bool = True
) -> dict[str, Array]:
    """Some values of a model, by onnxruntime with its default optimizations or with none."""
    session = open_session(model, optimized=optimized, threads=1)
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


def graph_inputs(
    folded: FoldedModel, feeds: dict[str, Array], match: RoundingMode = RoundingMode.ORT
) -> dict[str, NDArray[np.int8]]:
    """The integer graph's inputs for a model's inputs."""
    return all_inputs(folded, HostSide(folded), feeds, match)


def run_folded(
    folded: FoldedModel, feeds: dict[str, Array], match: RoundingMode = RoundingMode.ORT
) -> dict[str, Array]:
    """The model's outputs by the host's parts and the golden model."""
    host = HostSide(folded)
    _, made = run_regions(
        folded, host, feeds, lambda index, values: run_graph(folded.regions[index], values, match=match)
    )
    return host.after(made, feeds)


def folded(
    model: onnx.ModelProto, match: RoundingMode = RoundingMode.ORT, extra_outputs: Collection[str] = ()
) -> FoldedModel:
    """The model, folded; it stays as it is."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    return fold_model(from_proto(copy, name="model"), match=match, extra_outputs=extra_outputs)


def compare(model: onnx.ModelProto, seed: int, match: RoundingMode = RoundingMode.ORT) -> Parity:
    """Fold a model, run it on random inputs and compare every integer tensor that both sides have.

    Showing a tensor may change onnxruntime's choice of kernels: what is compared is the model that shows them all.
    """
    plain = folded(model, match)
    made = {o for n in model.graph.node for o in n.output}
    names = [n for n in plain.graph.tensors if n in made]
    shown = with_outputs(model, names)
    model_under_test, feeds = folded(model, match, names), random_feeds(model, seed)
    ours = run_graph(model_under_test.graph, graph_inputs(model_under_test, feeds, match), match=match, keep=True)
    theirs = run_onnxruntime(shown.SerializeToString(), feeds, names, optimized=match is RoundingMode.ORT)
    different, largest = {}, 0
    for name in names:
        offset = 128 if theirs[name].dtype == np.uint8 else 0
        gap = np.abs((theirs[name].astype(np.int32) - offset).reshape(ours[name].shape) - ours[name])
        if gap.any():
            different[name], largest = int(np.count_nonzero(gap)), max(largest, int(gap.max()))
    return Parity(plain, len(names), sum(ours[n].size for n in names), different, largest)


def behind_float_kernels(model: onnx.ModelProto) -> set[str]:
    """Values that depend on a ConvTranspose, which onnxruntime has no integer kernel for and computes in float."""
    behind: set[str] = set()
    for node in model.graph.node:
        if node.op_type == "ConvTranspose" or behind & set(node.input):
            behind.update(node.output)
    return behind


def assert_equal(model: onnx.ModelProto, seed: int) -> Parity:
    """Every integer tensor equals onnxruntime's, and every output of the untouched model equals ours.

    What depends on a layer that onnxruntime computes in float is compared layer by layer instead.
    """
    found = compare(model, seed)
    assert found.tensors > 0
    behind = behind_float_kernels(model)
    wrong = {name: count for name, count in found.different.items() if name not in behind}
    assert not wrong, f"{wrong} of {found.elements} bytes differ, by up to {found.largest}"
    if behind:
        assert assert_layers_close(model, seed)
    feeds = random_feeds(model, seed)
    names = [o.name for o in model.graph.output if o.name not in behind]
    expected = run_onnxruntime(model.SerializeToString(), feeds, names)
    ours = run_folded(found.folded, feeds)
    for name in names:
        np.testing.assert_array_equal(ours[name], expected[name], err_msg=f"output {name}")
    return found


def assert_layers_close(model: onnx.ModelProto, seed: int, images: int = 1) -> tuple[LayerComparison, ...]:
    """On onnxruntime's own inputs, each layer gives its bytes; where onnxruntime computes in float, one value of ten
    thousand may differ, and each that does is a tie; gives the layers' comparisons.
    """
    plain = folded(model)
    several = [random_feeds(model, seed + n) for n in range(images)]
    found = LayerComparator(plain, model).attribute([(feeds, graph_inputs(plain, feeds)) for feeds in several])
    wrong = [f"{v.layer}: {v.counts}, ties: {v.ties}" for v in found.layers if not v.accepted]
    assert not wrong, wrong
    return found.layers
