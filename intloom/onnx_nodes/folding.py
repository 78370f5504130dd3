"""Evaluation of integer operators by the front end and the golden model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.compiler.frontend import TensorQuantization, fold_model
from intloom.compiler.importer import Constant, Model, OnnxNode, ValueType
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
    folded = fold_model(part, match=RoundingMode.ORT)
    graph = folded.graph
    if any(folded.host_parts) or folded.final_host_part is not None or set(graph.inputs) != set(data):
        reasons = "; ".join(v.reason for v in folded.assignments if v.reason)
        raise UnsupportedError(f"node {nodes[-1].name!r} does not run in integers: {reasons}")
    inputs = {n: _internal(data[n].array, q).reshape(graph.tensors[n].shape) for n, q in folded.input_quant.items()}
    made = run_graph(graph, inputs, match=RoundingMode.ORT)
    stored = {q.stored: _stored(made[n], q) for n, q in folded.output_quant.items()}
    return [stored[name] for name in outputs]


def _internal(values: Array, quant: TensorQuantization) -> NDArray[np.int8]:
    return (values.astype(np.int16) - 128 * quant.unsigned).astype(np.int8)


def _stored(values: NDArray[np.int8], quant: TensorQuantization) -> Array:
    kind = np.uint8 if quant.unsigned else np.int8
    return (values.astype(np.int16) + 128 * quant.unsigned).astype(kind).reshape(quant.shape)
