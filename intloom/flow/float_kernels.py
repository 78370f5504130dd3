"""Where onnxruntime alone differs: every layer is judged by itself, on onnxruntime's own inputs.

onnxruntime has no integer kernel for some layers (ConvTranspose, int8 activations in QDQ form) and computes them in
float; its single results may then differ by one, and everything behind such a layer differs after it. Fed with
onnxruntime's own inputs, each integer layer must give onnxruntime's bytes, and each float layer may differ where the
exact sum lies so near to a tie that a float32 sum may fall on its other side (see
`sim.golden.rounding_error_bound`), in at most one value of ten thousand. If all do, the end results differ for these
roundings alone; if any does not, the difference is real.

Such a rate shows only over many values: where a small layer exceeds it on one input, it is judged over further ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
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
from intloom.models import load_onnx
from intloom.preprocess import optimized
from intloom.sim.golden import run_graph
from intloom.sim.golden.registry import Context, operation
from intloom.sim.golden.rounding_error_bound import at_error_bound

ONE_IN = 10_000
"""Of so many values of a layer that onnxruntime computes in float, one may differ."""
_ENOUGH = 10 * ONE_IN
"""So many values of a layer tell its rate."""
_MOST_RUNS = 20
_FIRST_SEED = 1 << 20
"""Far from the seeds that people choose, so that a further input is another one."""
_FLOAT_OPERATORS = {"Conv", "ConvTranspose", "Gemm", "MatMul", "FusedConv", "FusedGemm", "FusedMatMul"} | {
    # They sum up dequantized values, so that ties fall by the order of the values.
    "AveragePool", "QLinearAveragePool", "ReduceMean",
}  # fmt: skip

Run = tuple[Mapping[str, Array], Mapping[str, Int8]]
"""The model's inputs, and the integer graph's own for them."""


@dataclass(frozen=True, kw_only=True)
class LayerComparison:
    """One layer, run by the golden model on onnxruntime's inputs, against onnxruntime's output."""

    layer: str
    tensor: str
    values: int
    different: int
    in_float: bool
    """Whether onnxruntime computes it in float."""
    ties: bool
    """Whether every difference is at a tie that float32 may fall to either side of."""
    further: LayerComparison | None = None
    """Over further inputs, where the values of one are too few to tell how often the layer differs."""

    @property
    def attributable(self) -> bool:
        """Whether onnxruntime's float kernel explains each difference by itself, however many there are."""
        return not self.different or (self.in_float and self.ties)

    @property
    def accepted(self) -> bool:
        """Whether onnxruntime's float kernel explains what differs."""
        if self.further is not None:
            return self.attributable and self.further.accepted
        return self.attributable and self.different <= max(1, self.values // ONE_IN)

    @property
    def counts(self) -> str:
        """In how many values it differs."""
        here = f"{self.different} of {self.values} values"
        return here if self.further is None else f"{here}, and {self.further.counts} over further inputs"

    def merged_with(self, other: LayerComparison) -> LayerComparison:
        """The verdict over the values of both runs."""
        values, different = self.values + other.values, self.different + other.different
        return replace(self, values=values, different=different, ties=self.ties and other.ties)


@dataclass(frozen=True)
class FloatKernelAttribution:
    """Every layer's verdict."""

    layers: tuple[LayerComparison, ...]

    @property
    def accepted(self) -> bool:
        """Whether float kernels explain that the end results differ: some layer differs, and none without excuse."""
        return all(v.accepted for v in self.layers) and any(v.different for v in self.layers)

    @property
    def text(self) -> str:
        """The reason as a sentence, or the layers that have no excuse."""
        if real := [v for v in self.layers if not v.accepted]:
            names = "; ".join(f"{v.layer} in {v.counts} of {v.tensor}" for v in real[:4])
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
    folded: FoldedModel, model: Path, feeds: Mapping[str, Array], inputs: Mapping[str, Int8]
) -> FloatKernelAttribution:
    """Judge every layer of `folded` on what onnxruntime computes for `feeds`; `inputs` are the graph's own."""
    return LayerComparator(folded, load_onnx(model)).attribute([(feeds, inputs)])


def further_runs(folded: FoldedModel, feeds: Mapping[str, Array], count: int) -> Iterator[Run]:
    """Seeded inputs of the same shapes and types, and what the host makes of them."""
    host = HostSide(folded)
    for seed in range(_FIRST_SEED, _FIRST_SEED + count):
        other = {n: _seeded_like(array, seed) for n, array in feeds.items()}
        yield other, all_inputs(folded, host, other, RoundingMode.ORT)


def _seeded_like(array: Array, seed: int) -> Array:
    if np.issubdtype(array.dtype, np.floating):
        return seeded_input(array.shape, seed).astype(array.dtype)
    return np.random.default_rng(seed).choice(array.ravel(), array.shape)


class LayerComparator:
    """Judges the layers of a model, each on onnxruntime's own inputs."""

    def __init__(self, folded: FoldedModel, proto: onnx.ModelProto) -> None:
        self._folded, self._graph = folded, folded.graph
        self._names = _visible_names(proto, folded)
        self._shown = list(dict.fromkeys(self._names.values()))
        shown = with_outputs(proto, self._shown)
        self._session = open_session(shown.SerializeToString())
        # What is shown decides which kernels onnxruntime finds, so all is judged by the file that gives the tensors.
        self._in_float = float_nodes(shown)
        visible = {*self._graph.inputs, *self._names}
        self._parts = tuple(subgraphs_with_extra_outputs(self._graph, proto, frozenset(self._shown), visible))

    def attribute(self, runs: Sequence[Run]) -> FloatKernelAttribution:
        """Every layer's verdict over the values of all runs, and over further inputs where these are too few."""
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
        """Every layer's verdict over the values of all runs together."""
        total: dict[str, LayerComparison] = {}
        for feeds, inputs in runs:
            theirs = {**inputs, **self._their_tensors(feeds)}
            for part in self._parts:
                verdict = self._judge(part, theirs)
                seen = total.get(verdict.tensor)
                total[verdict.tensor] = seen.merged_with(verdict) if seen else verdict
        return FloatKernelAttribution(tuple(total.values()))

    def _their_tensors(self, feeds: Mapping[str, Array]) -> dict[str, Int8]:
        """Every tensor of the graph that onnxruntime has too, as the accelerator's int8."""
        values = run_session(self._session, self._shown, feeds)
        return {t: _as_int8(values[name], self._graph.tensors[t].shape) for t, name in self._names.items()}

    def _judge(self, part: IntGraph, theirs: Mapping[str, Int8]) -> LayerComparison:
        name, inputs = part.outputs[0], {n: theirs[n] for n in part.inputs}
        different = run_graph(part, inputs, match=RoundingMode.ORT)[name] != theirs[name]
        # A layer that no tensor shows by itself (its table merged into it, then a Concat) counts with what follows.
        floats = [n for n in part.nodes if self._in_float & set(n.origin)]
        near = (_run_strayed(part, inputs, floats, way) == theirs[name] for way in (-1, 1) if different.any())
        return LayerComparison(
            layer=part.nodes[-1].name,
            tensor=name,
            values=int(different.size),
            different=int(np.count_nonzero(different)),
            in_float=bool(floats),
            ties=bool(np.logical_or.reduce([~different, *near]).all()),
        )


def float_nodes(proto: onnx.ModelProto) -> set[str]:
    """Names of the nodes that onnxruntime, after its default optimization, still computes in float."""
    # Integer kernels are chosen at this level; the next one only changes layouts, and names with them.
    graph = optimized(proto, "ORT_ENABLE_EXTENDED").graph
    return {n.name for n in graph.node if n.op_type in _FLOAT_OPERATORS}


def _run_strayed(part: IntGraph, inputs: Mapping[str, Int8], floats: list[Node], direction: int) -> Int8:
    """The part's result with all sums of some nodes as far up or down as float32 may stray."""
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
    """For every tensor of the graph that onnxruntime has too, its name there."""
    made = {o for n in proto.graph.node for o in n.output}
    border = {name: q.stored for name, q in (*folded.input_quant.items(), *folded.output_quant.items())}
    named = {t: border.get(t, t) for t in folded.graph.tensors}
    return {tensor: name for tensor, name in named.items() if name in made}


def _as_int8(stored: NDArray[Any], shape: tuple[int, ...]) -> Int8:
    offset = 128 if stored.dtype == np.uint8 else 0
    return (stored.astype(np.int16) - offset).astype(np.int8).reshape(shape)
