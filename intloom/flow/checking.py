"""Comparison of a run with the golden model and with onnxruntime, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.arrays import Array
from intloom.compiler.frontend import FoldedModel
from intloom.compiler.ir import IntGraph
from intloom.compiler.program.program import Program
from intloom.flow.host import Int8, run_with_outputs, stored_array
from intloom.hw.spec.arith import RoundingMode
from intloom.models import ModelSource, model_proto
from intloom.sim.checks import GOLDEN, ONNXRUNTIME, Check
from intloom.sim.golden import run_graph
from intloom.sim.result import RunResult


def compare_tensor(tensor: str, layer: str, against: str, got: NDArray[Any], expected: NDArray[Any]) -> Check:
    """Compare two arrays of the same shape element by element."""
    different = got != expected
    count = int(np.count_nonzero(different))
    if not count:
        return Check(tensor, layer, against, got.size, 0)
    at = tuple(int(i) for i in np.argwhere(different)[0])
    wanted, found = int(expected[at]), int(got[at])
    first = f"at {list(at)}: expected {wanted}, got {found}"
    return Check(tensor, layer, against, got.size, count, first, at, wanted, found)


def check_golden(program: Program, folded: FoldedModel, result: RunResult) -> list[Check]:
    """Compare every recorded tensor and all outputs of a run with the golden model."""
    expected = run_graph(folded.graph, result.inputs, match=program.params.match, keep=bool(result.tensors))
    makers = _makers(folded.graph)
    seen = {**result.tensors, **result.outputs}
    return [compare_tensor(n, makers.get(n, ""), GOLDEN, seen[n], expected[n]) for n in seen if n in expected]


def check_onnxruntime(
    folded: FoldedModel,
    model: ModelSource,
    feeds: Mapping[str, Array],
    outputs: Mapping[str, Int8],
    match: RoundingMode,
) -> list[Check]:
    """Compare the outputs of a run with onnxruntime, which runs the whole model with its default optimization.

    Rounding mode `exact` differs from fp32 arithmetic by design, so nothing is compared.
    """
    if match is not RoundingMode.ORT:
        return []
    names = {name: quant.stored for name, quant in folded.output_quant.items()}
    reference = run_with_outputs(model_proto(model), list(names.values()), feeds)
    makers = _makers(folded.graph)
    checks = []
    for name, stored in names.items():
        got = stored_array(outputs[name], folded.output_quant[name])
        checks.append(compare_tensor(name, makers.get(name, ""), ONNXRUNTIME, got, reference[stored]))
    return checks


def mark_attributed(checks: Sequence[Check]) -> list[Check]:
    """The checks, with every difference from onnxruntime attributed to float kernels."""
    return [replace(c, mismatches=0, attributed=c.mismatches) if c.against == ONNXRUNTIME else c for c in checks]


def covering_layers(graph: IntGraph, checks: Sequence[Check]) -> dict[str, str]:
    """For each layer without a comparison: the later layer whose comparison covers its result."""
    compared = {c.layer for c in checks if c.against == GOLDEN}
    found: dict[str, str] = {}
    for node in reversed(graph.nodes):
        if node.name not in compared:
            users = [n.name if n.name in compared else found.get(n.name, "") for n in graph.consumers(node.output)]
            if first := next((u for u in users if u), ""):
                found[node.name] = first
    return found


def _makers(graph: IntGraph) -> dict[str, str]:
    return {node.output: node.name for node in graph.nodes}
