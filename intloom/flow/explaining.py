"""Where onnxruntime alone differs: every layer is judged by itself, on onnxruntime's own inputs.

onnxruntime has no integer kernel for some layers (ConvTranspose, int8 activations in QDQ form) and computes them in
float; its single results may then differ by one, and everything behind such a layer differs after it. Fed with
onnxruntime's own inputs, each integer layer must give onnxruntime's bytes, and each float layer may differ by one
step before its table in at most one value of ten thousand. If all do, the end results differ for these roundings
alone; if any does not, the difference is real.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from compiler.frontend import FoldedModel
from compiler.ir import IntGraph, Node
from hw.spec.arith import Match
from intloom.models import load_onnx
from intloom.preprocess import optimised
from sim.golden import run_graph

from .host import Array, Int8, run_with_outputs, with_outputs

ONE_IN = 10_000
"""Of so many values of a layer that onnxruntime computes in float, one may differ."""
_FLOAT_OPERATORS = {"Conv", "ConvTranspose", "Gemm", "MatMul", "FusedConv", "FusedGemm", "FusedMatMul"} | {
    # They sum up dequantised values, so that ties fall by the order of the values.
    "AveragePool", "QLinearAveragePool", "ReduceMean",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LayerVerdict:
    """One layer, run by the golden model on onnxruntime's inputs, against onnxruntime's output."""

    layer: str
    tensor: str
    values: int
    different: int
    in_float: bool
    """Whether onnxruntime computes it in float."""
    one_step: bool
    """Whether every difference is one step before the layer's table."""

    @property
    def holds(self) -> bool:
        """Whether onnxruntime's float kernel explains what differs."""
        allowed = max(1, self.values // ONE_IN) if self.in_float and self.one_step else 0
        return self.different <= allowed


@dataclass(frozen=True)
class Explanation:
    """Every layer's verdict."""

    layers: tuple[LayerVerdict, ...]

    @property
    def holds(self) -> bool:
        """Whether float kernels explain that the end results differ: some layer differs, and none without excuse."""
        return all(v.holds for v in self.layers) and any(v.different for v in self.layers)

    @property
    def text(self) -> str:
        """The reason as a sentence, or the layers that have no excuse."""
        if real := [v for v in self.layers if not v.holds]:
            names = "; ".join(f"{v.layer} in {v.different} of {v.values} values of {v.tensor}" for v in real[:4])
            return f"not explained by onnxruntime's float kernels: on its own inputs, these layers differ: {names}"
        rounded = [v for v in self.layers if v.different]
        if not rounded:
            return f"not explained: on onnxruntime's own inputs, each of {len(self.layers)} layers gives its bytes"
        names = ", ".join(f"{v.layer} ({v.different} of {v.values} values by one step)" for v in rounded)
        return (
            f"onnxruntime computes in float: {names}; on its own inputs, each of the other "
            f"{len(self.layers) - len(rounded)} layers gives its bytes"
        )


def explain(folded: FoldedModel, model: Path, feeds: Mapping[str, Array], inputs: Mapping[str, Int8]) -> Explanation:
    """Judge every layer of `folded` on what onnxruntime computes for `feeds`; `inputs` are the graph's own."""
    proto, graph = load_onnx(model), folded.graph
    theirs = {**inputs, **_their_tensors(proto, folded, feeds)}
    # What is shown decides which kernels onnxruntime finds, so they are read off the file that gave the tensors.
    in_float = float_nodes(with_outputs(proto, dict.fromkeys(_visible_names(proto, folded).values())))
    return Explanation(tuple(_judge(graph, part, theirs, in_float) for part in visible_parts(graph, set(theirs))))


def float_nodes(proto: onnx.ModelProto) -> set[str]:
    """Names of the nodes that onnxruntime, after its default optimisation, still computes in float."""
    # Integer kernels are chosen at this level; the next one only changes layouts, and names with them.
    graph = optimised(proto, "ORT_ENABLE_EXTENDED").graph
    return {n.name for n in graph.node if n.op_type in _FLOAT_OPERATORS}


def visible_parts(graph: IntGraph, visible: set[str]) -> Iterator[IntGraph]:
    """The graph in parts from tensors that onnxruntime has too to the next such tensor; each ends in one node."""
    behind: dict[str, tuple[Node, ...]] = {}
    for node in graph.nodes:
        hidden = (n for name in node.inputs if name not in visible for n in behind[name])
        nodes = (*dict.fromkeys(hidden), node)
        behind[node.output] = nodes
        if node.output in visible:
            read = dict.fromkeys(name for n in nodes for name in n.inputs if name in visible)
            tensors = {name: graph.tensors[name] for n in nodes for name in (*n.inputs, n.output)}
            yield IntGraph(node.name, tensors, nodes, tuple(read), (node.output,))


def _judge(graph: IntGraph, part: IntGraph, theirs: Mapping[str, Int8], in_float: set[str]) -> LayerVerdict:
    name, last = part.outputs[0], part.nodes[-1]
    inputs = {n: theirs[n] for n in part.inputs}
    different = run_graph(part, inputs, match=Match.ORT)[name] != theirs[name]
    one_step = True
    if different.any():
        floats = {n.name for n in part.nodes if in_float & set(n.origin)} or {last.name}
        moved = (
            replace(part, nodes=tuple(_moved(n, step) if n.name in floats else n for n in part.nodes))
            for step in (-1, 0, 1)
        )
        near = [run_graph(p, inputs, match=Match.ORT)[name] == theirs[name] for p in moved]
        one_step = bool(np.logical_or.reduce(near).all())
    return LayerVerdict(
        layer=last.name,
        tensor=name,
        values=int(different.size),
        different=int(np.count_nonzero(different)),
        # A layer that no tensor shows by itself (its table merged into it, then a Concat) counts with what follows.
        in_float=any(in_float & set(n.origin) for n in part.nodes),
        one_step=one_step,
    )


def _moved(node: Node, step: int) -> Node:
    """The node with every result `step` higher before its table; as it is, if it cannot hold a table."""
    if not hasattr(node, "table"):
        return node
    results = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int16)
    near = np.clip(results + step, -128, 127).astype(np.int8)
    if node.table is not None:
        near = np.frombuffer(node.table, np.int8)[near.view(np.uint8)]
    return replace(node, table=near.tobytes())  # type: ignore[call-arg]  # it has the field


def _their_tensors(proto: onnx.ModelProto, folded: FoldedModel, feeds: Mapping[str, Array]) -> dict[str, Int8]:
    """Every tensor of the graph that onnxruntime has too, as the accelerator's int8."""
    wanted = _visible_names(proto, folded)
    values = run_with_outputs(proto, list(dict.fromkeys(wanted.values())), feeds)
    return {t: _as_int8(values[name], folded.graph.tensors[t].shape) for t, name in wanted.items()}


def _visible_names(proto: onnx.ModelProto, folded: FoldedModel) -> dict[str, str]:
    """For every tensor of the graph that onnxruntime has too, its name there."""
    made = {o for n in proto.graph.node for o in n.output}
    border = {name: q.stored for name, q in (*folded.input_quant.items(), *folded.output_quant.items())}
    named = {t: border.get(t, t) for t in folded.graph.tensors}
    return {tensor: name for tensor, name in named.items() if name in made}


def _as_int8(stored: NDArray[Any], shape: tuple[int, ...]) -> Int8:
    offset = 128 if stored.dtype == np.uint8 else 0
    return (stored.astype(np.int16) - offset).astype(np.int8).reshape(shape)
