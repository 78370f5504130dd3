"""The golden model: runs an integer graph by the operators' own definitions."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UsageError
from intloom.compiler.ir import IntGraph
from intloom.compiler.ir.node import Context
from intloom.compiler.ir.tensor import Image
from intloom.hw.spec.arith import RoundingMode


def run_graph(
    graph: IntGraph, inputs: Mapping[str, NDArray[np.int8]], *, match: RoundingMode, keep: bool = False
) -> dict[str, NDArray[np.int8]]:
    """Outputs of the graph for these inputs; with `keep` every tensor of the graph.

    Raises
    ------
    UsageError
        The inputs are not exactly the graph's, or have another shape or type.
    """
    values = _checked(graph, inputs)
    context = Context(match, graph.tensors)
    left = Counter(name for n in graph.nodes for name in n.inputs)
    # An output counts as a reader that never finishes, so it is not released.
    left.update(graph.outputs)
    for node in graph.nodes:
        result = node.evaluate([values[name] for name in node.inputs], context)
        wanted = graph.tensors[node.output].shape[1:]
        if result.dtype != np.int8 or result.shape != wanted:
            raise UsageError(f"node {node.name!r} must give int8 {wanted}, not {result.dtype} {result.shape}")
        values[node.output] = result
        if not keep:
            _release(values, node.inputs, left)
    names = graph.tensors if keep else graph.outputs
    return {name: values[name][None] for name in names}


def _release(values: dict[str, Image], names: tuple[str, ...], left: Counter[str]) -> None:
    """Drop operands that nothing reads any more."""
    for name in names:
        left[name] -= 1
        if left[name] == 0:
            del values[name]


def _checked(graph: IntGraph, inputs: Mapping[str, NDArray[np.int8]]) -> dict[str, Image]:
    if set(inputs) != set(graph.inputs):
        raise UsageError(f"inputs must be {sorted(graph.inputs)}, not {sorted(inputs)}")
    for name, array in inputs.items():
        shape = graph.tensors[name].shape
        if array.dtype != np.int8 or array.shape != shape:
            raise UsageError(f"input {name!r} must be int8 of shape {shape}, not {array.dtype} of {array.shape}")
    return {name: np.ascontiguousarray(array[0]) for name, array in inputs.items()}
