"""Detection tail: the nodes that decode boxes and scores, for which 8 bits are too few.

A final Concat of pixels (0 to 640) and scores (0 to 1) with one scale rounds every score to zero, the softmax over
distances loses its small terms, and equal bytes leave the order of a TopK open. The tail therefore stays float by
default.
"""

from collections import defaultdict

import numpy as np
import onnx
from onnx import numpy_helper

WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators with weights."""
_DECODING = frozenset({"NonMaxSuppression", "Softmax", "TopK"})
_MOVING = frozenset({"Concat", "Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"})


def float_tail(graph: onnx.GraphProto) -> list[str]:
    """Names of the nodes of the tail, in graph order; empty if the model has none.

    A node is in the tail if no layer with trained weights follows it and other such nodes connect it to a Softmax, a
    TopK, a NonMaxSuppression, or a Concat of scores from a Sigmoid with other values. The convolution with weights
    0, 1, 2 and so on, which computes the mean of a distribution, is not a trained layer.
    """
    constants = {i.name: i for i in graph.initializer}
    # Exporters also write weights as Constant nodes.
    made = [n for n in graph.node if n.op_type == "Constant" and not n.domain]
    constants |= {n.output[0]: a.t for n in made for a in n.attribute if a.name == "value"}
    producers = {output: i for i, node in enumerate(graph.node) for output in node.output}
    late = _after_last_weights(graph, constants, producers)
    neighbors: dict[int, set[int]] = defaultdict(set)
    for i in late:
        for name in graph.node[i].input:
            source = producers.get(name)
            if source in late and source is not None:
                neighbors[i].add(source)
                neighbors[source].add(i)
    tail = {i for i in late if graph.node[i].op_type in _DECODING or _joins_scores(graph, i, late, producers)}
    frontier = list(tail)
    while frontier:
        fresh = neighbors[frontier.pop()] - tail
        tail |= fresh
        frontier += fresh
    return [graph.node[i].name for i in sorted(tail)]


def _joins_scores(graph: onnx.GraphProto, index: int, late: set[int], producers: dict[str, int]) -> bool:
    """Whether a node is a Concat of scores from a Sigmoid with computed values of another kind, such as boxes."""
    if graph.node[index].op_type != "Concat":
        return False
    sources = {
        _computed_by(graph, producers[name], late, producers) for name in graph.node[index].input if name in producers
    }
    return "Sigmoid" in sources and len(sources) > 1


def _computed_by(graph: onnx.GraphProto, index: int, late: set[int], producers: dict[str, int]) -> str:
    """The operator that computes a value, before nodes that only move it; empty if that is no node of the tail."""
    while index in late:
        node = graph.node[index]
        source = producers.get(node.input[0]) if node.op_type in _MOVING and node.input else None
        if source is None:
            return str(node.op_type)
        index = source
    return ""


def _after_last_weights(
    graph: onnx.GraphProto, constants: dict[str, onnx.TensorProto], producers: dict[str, int]
) -> set[int]:
    """Indices of nodes that are not trained layers and do not precede one."""
    early: set[int] = set()
    for i in range(len(graph.node) - 1, -1, -1):
        node = graph.node[i]
        if i in early or _is_trained(node, constants):
            early.add(i)
            early.update(producers[name] for name in node.input if name in producers)
    return set(range(len(graph.node))) - early


def _is_trained(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> bool:
    if node.op_type not in WEIGHTED or len(node.input) < 2:
        return False
    if node.input[1] not in constants:
        # The weights of a convolution may be computed from constants; both factors of a MatMul may be activations.
        return node.op_type in ("Conv", "ConvTranspose")
    weights = numpy_helper.to_array(constants[node.input[1]]).ravel()
    return not np.array_equal(weights, np.arange(weights.size))
