"""Attribution of differences from onnxruntime to its float kernels, by a comparison of each layer on its own.

onnxruntime has no integer kernel for some layers (ConvTranspose, int8 activations in QDQ form) and computes them in
float. Single results can then differ by one step, and so can all results that depend on them. Each layer is therefore
run on onnxruntime's own inputs:

- An integer layer must give onnxruntime's bytes.
- A float layer may differ in one value of 10,000, and only where the exact sum is so close to a tie that a float32 sum
  can be on the other side of it (see `intloom.sim.golden.rounding_error_bound`).

If every layer meets its rule, the differences are attributed to float kernels. Otherwise they are mismatches. A small
layer that exceeds the rate on one input is compared on more inputs, because a rate needs many values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.arrays import Array
from intloom.compiler.frontend import FoldedModel
from intloom.compiler.ir import IntGraph, Node
from intloom.flow.host import HostSide, Int8, open_session, run_session, with_outputs
from intloom.flow.regions import all_inputs
from intloom.flow.subgraphs import subgraphs_with_extra_outputs
from intloom.hw.spec.arith import RoundingMode
from intloom.images import seeded_input
from intloom.models import ModelSource, model_proto
from intloom.preprocess import optimized
from intloom.sim.golden import run_graph
from intloom.sim.golden.registry import Context, operation
from intloom.sim.golden.rounding_error_bound import at_error_bound

ONE_IN = 10_000
"""Values of a float layer per value that may differ."""
_ENOUGH = 10 * ONE_IN
"""Values that are needed to measure the rate of a layer."""
_MOST_RUNS = 20
_FIRST_SEED = 1 << 20
"""Above the seeds that users choose, so that further inputs differ from theirs."""
_FLOAT_OPERATORS = {"Conv", "ConvTranspose", "Gemm", "MatMul", "FusedConv", "FusedGemm", "FusedMatMul"} | {
    # They sum dequantized values, so the order of the values decides ties.
    "AveragePool", "QLinearAveragePool", "ReduceMean",
}  # fmt: skip

Run = tuple[Mapping[str, Array], Mapping[str, Int8]]
"""Inputs of the model, and the corresponding inputs of the integer graph."""


@dataclass(frozen=True, kw_only=True)
class LayerComparison:
    """Comparison of one layer, run by the golden model on onnxruntime's inputs, with onnxruntime's output."""

    layer: str
    tensor: str
    values: int
    different: int
    in_float: bool
    """Whether onnxruntime computes it in float."""
    ties: bool
    """Whether float32 rounding can decide the tie at every difference."""
    further: LayerComparison | None = None
    """The comparison on more inputs, if one input has too few values to measure the rate."""

    @property
    def attributable(self) -> bool:
        """Whether a float kernel can cause each difference, regardless of their number."""
        return not self.different or (self.in_float and self.ties)

    @property
    def accepted(self) -> bool:
        """Whether the layer is equal, or its differences and their rate are attributed to a float kernel."""
        if self.further is not None:
            return self.attributable and self.further.accepted
        return self.attributable and self.different <= max(1, self.values // ONE_IN)

    @property
    def counts(self) -> str:
        """The number of values that differ, as text."""
        here = f"{self.different} of {self.values} values"
        return here if self.further is None else f"{here}, and {self.further.counts} over further inputs"

    def merged_with(self, other: LayerComparison) -> LayerComparison:
        """The comparison over the values of both runs."""
        values, different = self.values + other.values, self.different + other.different
        return replace(self, values=values, different=different, ties=self.ties and other.ties)


@dataclass(frozen=True)
class FloatKernelAttribution:
    """The comparison of every layer."""

    layers: tuple[LayerComparison, ...]

    @property
    def accepted(self) -> bool:
        """Whether the differences are attributed: at least one layer differs, and all layers are accepted."""
        return all(v.accepted for v in self.layers) and any(v.different for v in self.layers)

    @property
    def text(self) -> str:
        """The layers that differ, and whether their differences are attributed to float kernels."""
        if mismatched := [v for v in self.layers if not v.accepted]:
            names = "; ".join(f"{v.layer} in {v.counts} of {v.tensor}" for v in mismatched[:4])
            return f"not attributed to onnxruntime's float kernels: on its own inputs, these layers differ: {names}"
        rounded = [v for v in self.layers if v.different]
        if not rounded:
            return f"not attributed: on onnxruntime's own inputs, each of {len(self.layers)} layers gives its bytes"
        names = ", ".join(f"{v.layer} ({v.counts}, all at ties)" for v in rounded)
        return (
            f"onnxruntime computes in float: {names}; on its own inputs, each of the other "
            f"{len(self.layers) - len(rounded)} layers gives its bytes"
        )


def attribute_differences(
    folded: FoldedModel, model: ModelSource, feeds: Mapping[str, Array], inputs: Mapping[str, Int8]
) -> FloatKernelAttribution:
    """Compare every layer of `folded` on onnxruntime's tensors for `feeds`; `inputs` are the integer graph's inputs."""
    return LayerComparator(folded, model_proto(model)).attribute([(feeds, inputs)])


def further_runs(folded: FoldedModel, feeds: Mapping[str, Array], count: int) -> Iterator[Run]:
    """Seeded inputs of the same shapes and types, and the integer graph's inputs for them."""
    host = HostSide(folded)
    for seed in range(_FIRST_SEED, _FIRST_SEED + count):
        other = {n: _seeded_like(array, seed) for n, array in feeds.items()}
        yield other, all_inputs(folded, host, other, RoundingMode.ORT)


def _seeded_like(array: Array, seed: int) -> Array:
    if np.issubdtype(array.dtype, np.floating):
        return seeded_input(array.shape, seed).astype(array.dtype)
    return np.random.default_rng(seed).choice(array.ravel(), array.shape)


class LayerComparator:
    """Compares the layers of a model, each on onnxruntime's own inputs."""

    def __init__(self, folded: FoldedModel, proto: onnx.ModelProto) -> None:
        self._folded, self._graph = folded, folded.graph
        self._names = _visible_names(proto, folded)
        self._shown = list(dict.fromkeys(self._names.values()))
        shown = with_outputs(proto, self._shown)
        self._session = open_session(shown.SerializeToString())
        # Extra outputs change onnxruntime's choice of kernels, so the kernels are read from the same modified model.
        self._in_float = float_nodes(shown)
        visible = {*self._graph.inputs, *self._names}
        self._parts = tuple(subgraphs_with_extra_outputs(self._graph, proto, frozenset(self._shown), visible))

    def attribute(self, runs: Sequence[Run]) -> FloatKernelAttribution:
        """Compare every layer over the values of all runs, and over further inputs if these are too few."""
        found = self.compare_all(runs).layers
        frequent = [v for v in found if not v.accepted]
        if not frequent or not all(v.attributable for v in found):
            return FloatKernelAttribution(found)
        wanted = max(-(-_ENOUGH * len(runs) // v.values) for v in frequent)
        more = self.compare_all(further_runs(self._folded, runs[0][0], min(wanted, _MOST_RUNS))).layers
        return FloatKernelAttribution(
            tuple(v if v.accepted else replace(v, further=other) for v, other in zip(found, more, strict=True))
        )

    def compare_all(self, runs: Iterable[Run]) -> FloatKernelAttribution:
        """Compare every layer over the values of all runs together."""
        total: dict[str, LayerComparison] = {}
        for feeds, inputs in runs:
            theirs = {**inputs, **self._their_tensors(feeds)}
            for part in self._parts:
                comparison = self._compare(part, theirs)
                seen = total.get(comparison.tensor)
                total[comparison.tensor] = seen.merged_with(comparison) if seen else comparison
        return FloatKernelAttribution(tuple(total.values()))

    def _their_tensors(self, feeds: Mapping[str, Array]) -> dict[str, Int8]:
        """Every tensor of the graph that exists in onnxruntime's model, as the accelerator's int8."""
        values = run_session(self._session, self._shown, feeds)
        return {t: _as_int8(values[name], self._graph.tensors[t].shape) for t, name in self._names.items()}

    def _compare(self, part: IntGraph, theirs: Mapping[str, Int8]) -> LayerComparison:
        name, inputs = part.outputs[0], {n: theirs[n] for n in part.inputs}
        different = run_graph(part, inputs, match=RoundingMode.ORT)[name] != theirs[name]
        # A layer whose tensor does not exist in onnxruntime's model belongs to the subgraph of the next one that does.
        floats = [n for n in part.nodes if self._in_float & set(n.origin)]
        near = (_run_at_error_bound(part, inputs, floats, way) == theirs[name] for way in (-1, 1) if different.any())
        return LayerComparison(
            layer=part.nodes[-1].name,
            tensor=name,
            values=int(different.size),
            different=int(np.count_nonzero(different)),
            in_float=bool(floats),
            ties=bool(np.logical_or.reduce([~different, *near]).all()),
        )


def float_nodes(proto: onnx.ModelProto) -> set[str]:
    """Names of the nodes that onnxruntime computes in float after its default optimization."""
    # Integer kernels are chosen at this level. The next level only changes layouts, and renames nodes.
    graph = optimized(proto, "ORT_ENABLE_EXTENDED").graph
    return {n.name for n in graph.node if n.op_type in _FLOAT_OPERATORS}


def _run_at_error_bound(part: IntGraph, inputs: Mapping[str, Int8], floats: list[Node], direction: int) -> Int8:
    """The part's result with the sums of some nodes moved up or down by the float32 rounding-error bound."""
    values = {name: array[0] for name, array in inputs.items()}
    context = Context(RoundingMode.ORT, part.tensors)
    for node in part.nodes:
        operands = [values[n] for n in node.inputs]
        moved = node in floats
        values[node.output] = (
            at_error_bound(node, operands, context, direction) if moved else operation(node)(node, operands, context)
        )
    return values[part.outputs[0]][None]


def _visible_names(proto: onnx.ModelProto, folded: FoldedModel) -> dict[str, str]:
    """The name in onnxruntime's model of every tensor of the graph that exists there."""
    made = {o for n in proto.graph.node for o in n.output}
    border = {name: q.stored for name, q in (*folded.input_quant.items(), *folded.output_quant.items())}
    named = {t: border.get(t, t) for t in folded.graph.tensors}
    return {tensor: name for tensor, name in named.items() if name in made}


def _as_int8(stored: NDArray[Any], shape: tuple[int, ...]) -> Int8:
    offset = 128 if stored.dtype == np.uint8 else 0
    return (stored.astype(np.int16) - offset).astype(np.int8).reshape(shape)
