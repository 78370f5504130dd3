"""Comparison of a run with the golden model and with onnxruntime, byte for byte."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.arrays import Array
from intloom.compiler.frontend import FoldedModel
from intloom.compiler.importer import to_bytes
from intloom.compiler.ir import IntGraph
from intloom.compiler.partition.host import before
from intloom.flow.host import Int8, as_internal, as_signed, as_unsigned, run_with_outputs
from intloom.sim.checks import GOLDEN, ONNXRUNTIME, Check
from intloom.sim.compare import compare_tensor
from intloom.sim.result import RunResult


def check_golden(expected: Mapping[str, Int8], folded: FoldedModel, result: RunResult) -> list[Check]:
    """Compare every recorded tensor and all outputs of a run with the golden model's tensors."""
    makers = _makers(folded.graph)
    seen = {**result.tensors, **result.outputs}
    return [compare_tensor(n, makers.get(n, ""), GOLDEN, seen[n], expected[n]) for n in seen if n in expected]


def compare_reference(
    folded: FoldedModel, reference: Mapping[str, Int8], tensors: Mapping[str, Int8], against: str = ONNXRUNTIME
) -> list[Check]:
    """Compare tensors of the integer graph with those that the runtime `against` computed."""
    makers = _makers(folded.graph)
    return [compare_tensor(n, makers.get(n, ""), against, tensors[n], reference[n]) for n in reference]


def check_outputs(
    folded: FoldedModel, file: onnx.ModelProto, feeds: Mapping[str, Array], outputs: Mapping[str, Array]
) -> list[Check]:
    """Compare the model's outputs that the host computes with those of onnxruntime, which runs the whole model."""
    if folded.final_host_part is None:
        return []
    part = onnx.ModelProto.FromString(folded.final_host_part)
    names = [o.name for o in part.graph.output if o.name in outputs]
    proto, shifted = reference_model(folded, file)
    given = {n: as_unsigned(array, n in shifted) for n, array in feeds.items()}
    values = run_with_outputs(proto, names, given)
    return compare_outputs(
        {n: outputs[n] for n in names}, {n: as_signed(values[n], n in shifted) for n in names}, ONNXRUNTIME
    )


def compare_outputs(outputs: Mapping[str, Array], expected: Mapping[str, Array], against: str) -> list[Check]:
    """Compare outputs of the model with those of the runtime `against`."""
    return [_compare_output(n, array, expected[n], against) for n, array in outputs.items()]


def _compare_output(name: str, got: NDArray[Any], expected: NDArray[Any], against: str) -> Check:
    """Compare an output of any type; two values that are both NaN are equal."""
    if got.shape != expected.shape:
        return Check(name, "", against, got.nbytes, got.nbytes, f"expected shape {expected.shape}, got {got.shape}")
    different = (got != expected) & ((got == got) | (expected == expected))
    count = int(np.count_nonzero(different))
    if not count:
        return Check(name, "", against, got.nbytes, 0)
    at = tuple(int(i) for i in np.argwhere(different)[0])
    first = f"at {list(at)}: expected {expected[at]}, got {got[at]}"
    return Check(name, "", against, got.nbytes, count * got.itemsize, first, at)


def reference_model(folded: FoldedModel, file: onnx.ModelProto) -> tuple[onnx.ModelProto, frozenset[str]]:
    """The model of the exact comparison, and the names of its uint8 values that are int8 in the file.

    It is the imported model, the file with unique names and without functions, where onnxruntime computes this in
    integers, else its integer form (see `intloom.compiler.reference_form`).
    """
    form = folded.reference or folded.model
    if form is None:
        return file, frozenset()
    # onnxruntime loads no file with an unknown operator, even if no output depends on it.
    form = form.with_nodes(before(form, form.outputs, ()))
    return onnx.ModelProto.FromString(to_bytes(form)), form.shifted


def reference_tensors(
    folded: FoldedModel, file: onnx.ModelProto, feeds: Mapping[str, Array], tensors: Iterable[str]
) -> dict[str, Int8]:
    """Those of `tensors` that exist in the reference model, computed by onnxruntime, as the accelerator's int8."""
    proto, shifted = reference_model(folded, file)
    names = reference_names(folded, proto, tensors)
    given = {n: as_unsigned(array, n in shifted) for n, array in feeds.items()}
    values = run_with_outputs(proto, list(dict.fromkeys(names.values())), given)
    return {t: tensor_values(folded, t, values[name]) for t, name in names.items()}


def tensor_values(folded: FoldedModel, tensor: str, values: Array) -> Int8:
    """A value of the model as the integers that the graph's tensor holds, in the tensor's order."""
    if tensor in folded.orders:
        _, positions = folded.orders[tensor]
        lying = np.empty(values.size, values.dtype)
        lying[positions] = values
        values = lying
    return as_internal(values, folded.graph.tensors[tensor].shape)


def reference_names(folded: FoldedModel, reference: onnx.ModelProto, tensors: Iterable[str]) -> dict[str, str]:
    """For those of `tensors` that exist in the reference model: their names there."""
    made = {o for n in reference.graph.node for o in n.output}
    ordered = {name: stored for name, (stored, _) in folded.orders.items()}
    border = {name: q.stored for name, q in (*folded.input_quant.items(), *folded.output_quant.items())} | ordered
    return {t: border.get(t, t) for t in tensors if border.get(t, t) in made}


def covering_layers(graph: IntGraph, checks: Sequence[Check]) -> dict[str, str]:
    """For each layer without a comparison: the later layer whose comparison covers its result."""
    compared = {c.layer for c in checks if c.against == GOLDEN}
    covering: dict[str, str] = {}
    for node in reversed(graph.nodes):
        if node.name not in compared:
            users = [n.name if n.name in compared else covering.get(n.name, "") for n in graph.consumers(node.output)]
            if first := next((u for u in users if u), ""):
                covering[node.name] = first
    return covering


def _makers(graph: IntGraph) -> dict[str, str]:
    return {node.output: node.name for node in graph.nodes}
