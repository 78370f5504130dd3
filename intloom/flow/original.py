"""Distance of the user's own file in plain onnxruntime from the results of a run.

This is information, not the exact comparison: onnxruntime may compute layers of the file in float, for example those
with int8 activations, and one differing byte changes the layers after it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from intloom.arrays import Array
from intloom.compiler.frontend import FoldedModel
from intloom.compiler.reference import plain_session, saturates_sums
from intloom.flow.host import run_session
from intloom.preprocess import optimized
from intloom.sim.checks import OriginalComparison, OutputDistance

_FLOAT_OPERATORS = {"Conv", "ConvTranspose", "Gemm", "MatMul", "FusedConv", "FusedGemm", "FusedMatMul", "AveragePool"}


def compare_original(
    folded: FoldedModel, file: onnx.ModelProto, feeds: Mapping[str, Array], outputs: Mapping[str, Array]
) -> OriginalComparison:
    """Compare the model's `outputs` of a run with those of onnxruntime, which runs the file with its defaults."""
    try:
        theirs = run_session(plain_session(file.SerializeToString()), list(outputs), feeds)
    except Exception as error:  # noqa: BLE001  # onnxruntime's exceptions have no documented base class
        return OriginalComparison(error=f"onnxruntime does not run the file itself: {' '.join(str(error).split())}")
    layers = tuple(sorted(float_nodes(file) & folded.accelerated))
    compared = OriginalComparison(outputs=distances(folded, outputs, theirs), float_layers=layers)
    return replace(compared, saturated=not compared.matches and saturates_sums())


def distances(
    folded: FoldedModel, outputs: Mapping[str, Array], theirs: Mapping[str, Array]
) -> tuple[OutputDistance, ...]:
    """The distance of every output from the runtime's."""
    scales = {name: q.scale for q in folded.output_quant.values() for name in (q.source, q.stored)}
    floats = {q.source for q in folded.output_quant.values() if q.source != q.stored}
    return tuple(_distance(name, outputs[name], theirs[name], scales.get(name), name in floats) for name in outputs)


def _distance(
    name: str, ours: NDArray[Any], theirs: NDArray[Any], scale: float | None, is_float: bool
) -> OutputDistance:
    gap = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    gap = np.where(np.isfinite(gap), gap, np.where(ours == theirs, 0.0, np.inf))
    largest = float(gap.max(initial=0.0))
    if scale is None:
        steps, real = None, largest
    else:
        steps, real = (round(largest / scale), largest) if is_float else (round(largest), largest * scale)
    return OutputDistance(name, ours.size, int(np.count_nonzero(gap)), steps, real)


def float_nodes(model: onnx.ModelProto) -> set[str]:
    """Names of the nodes that onnxruntime computes in float after its default optimization."""
    # Integer kernels are chosen at this level. The next level only changes layouts, and renames nodes.
    graph = optimized(model, ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED.name).graph
    return {n.name for n in graph.node if n.op_type in _FLOAT_OPERATORS}
