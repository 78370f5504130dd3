"""Evaluation of integer operators by the front end and the golden model."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import Constant, Model, OnnxNode, ValueType
from intloom.flow.host import as_internal, stored_array
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.golden import run_graph

Array = NDArray[Any]


def run_folded(
    model: Model,
    nodes: Sequence[OnnxNode],
    data: Mapping[str, Constant],
    constants: Mapping[str, Constant],
    outputs: Mapping[str, ValueType],
) -> list[Array]:
    """Fold `nodes` as a separate model and run it; `data` are its inputs as integers.

    Raises
    ------
    UnsupportedError
        A node would run on the host.
    """
    types = {name: ValueType(c.dtype, tuple(c.array.shape)) for name, c in data.items()}
    part = Model("node", tuple(nodes), tuple(data), tuple(outputs), constants, {**types, **outputs}, model.opsets)
    folded = fold_model(part)
    graph = folded.graph
    if any(folded.host_parts) or folded.final_host_part is not None or set(graph.inputs) != set(data):
        reasons = "; ".join(v.reason for v in folded.assignments if v.reason)
        raise UnsupportedError(f"node {nodes[-1].name!r} does not run in integers: {reasons}")
    inputs = {n: as_internal(data[n].array, graph.tensors[n].shape) for n in folded.input_quant}
    made = run_graph(graph, inputs, match=RoundingMode.ORT)
    stored = {q.stored: stored_array(made[n], q) for n, q in folded.output_quant.items()}
    return [stored[name] for name in outputs]
