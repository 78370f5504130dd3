"""Checks of If and Loop: branches whose condition depends on sizes, results of one shape, and the number of trips."""

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.inliner import inline_local_functions

from intloom.common.errors import ModelError, UnsupportedError
from intloom.compiler.importer.known_values import KnownValues, known_sizes
from intloom.compiler.importer.subgraphs import graphs_of
from intloom.compiler.refusals import Refusal

_MOST_TRIPS = 1 << 16
"""Trips of a Loop that its condition does not end, with those of the Loops around it."""


def decide_branches(graph: onnx.GraphProto) -> bool:
    """Make conditions constant that only depend on sizes, as exporters write them; return whether there are any."""
    decided = False
    known = KnownValues(graph)
    for node in [n for n in graph.node if n.op_type == "If" and not n.domain]:
        value = known.value(node.input[0])
        if value is not None and value.size == 1:
            name = f"{node.output[0]}/condition"
            graph.initializer.append(numpy_helper.from_array(value.reshape(()).astype(np.bool_), name))
            node.input[0], decided = name, True
    return decided


def check_branches(graph: onnx.GraphProto) -> None:
    """Check that both branches of every If return values of the same shape.

    Raises
    ------
    UnsupportedError
        The shape of a result depends on the condition.
    """
    for node in graph.node:
        if node.op_type != "If" or node.domain:
            continue
        branches = [[known_sizes(v) for v in a.g.output] for a in node.attribute if a.HasField("g")]
        for one, two in zip(*branches, strict=False):
            if one is not None and two is not None and one != two:
                raise UnsupportedError(
                    f"node {node.name or node.output[0]!r}: its branches must return values of one shape, not {one} "
                    f"and {two}: export the model without the branch that is not used",
                    Refusal.CONTROL_FLOW.number,
                )


def check_loops(proto: onnx.ModelProto) -> None:
    """Check the trips of every Loop: simplifiers and reference runs compute all of them.

    Raises
    ------
    UnsupportedError
        A Loop that its condition does not end has more than `_MOST_TRIPS` trips, or their number cannot be computed.
    ModelError
        A function with a Loop cannot be inlined.
    """
    if any(_has_loop(n) for f in proto.functions for n in f.node):
        # Its trips may be an input of the function.
        try:
            proto = inline_local_functions(proto)
        except Exception as error:  # noqa: BLE001  # the library raises RuntimeError and its own classes
            raise ModelError(f"functions with a Loop must allow to be inlined ({error}): correct the model") from None
    if any(_has_loop(n) for n in proto.graph.node):
        _check_loops(proto.graph, KnownValues(proto.graph), 1)


def _has_loop(node: onnx.NodeProto) -> bool:
    return node.op_type == "Loop" or any(_has_loop(n) for g in graphs_of(node) for n in g.node)


def _check_loops(graph: onnx.GraphProto, known: KnownValues, outer: int) -> None:
    """Check the Loops of a graph around which `outer` trips run."""
    for node in graph.node:
        if not _has_loop(node):
            continue
        bodies, trips = [(g, KnownValues(g, known)) for g in graphs_of(node)], 1
        # ONNX's checker finds nodes and bodies that are not complete.
        complete = node.input and node.output and bodies and bodies[0][0].output and len(bodies[0][0].input) > 1
        if node.op_type == "Loop" and not node.domain and complete and not _may_end(*bodies[0]):
            trips = _trips(node, known, outer)
        for body, inside in bodies:
            _check_loops(body, inside, outer * max(trips, 1))


def _trips(node: onnx.NodeProto, known: KnownValues, outer: int) -> int:
    """The trips of a Loop that its condition does not end; 1 if they depend on the model's input."""
    if node.input[0] and not known.is_known(node.input[0]):
        return 1
    value = known.value(node.input[0]) if node.input[0] else None
    count = int(value.max(initial=0)) if value is not None and value.dtype.kind in "iu" else None
    if count is not None and count * outer <= _MOST_TRIPS:
        return count
    found = "a number that is not known" if node.input[0] else "no end"
    found = found if count is None else f"{count:,}" if outer == 1 else f"{count:,} in each of {outer:,}"
    raise UnsupportedError(
        f"node {node.name or node.output[0]!r}: a Loop must have at most {_MOST_TRIPS:,} trips, but it has {found}: "
        "export the model without it",
        Refusal.CONTROL_FLOW.number,
    )


def _may_end(body: onnx.GraphProto, known: KnownValues) -> bool:
    """Whether the condition that the body of a Loop computes may be false."""
    producers = {out: n for n in body.node for out in n.output}
    value = body.output[0].name
    # At most once for each node: the order of the nodes is not checked yet.
    for _ in body.node:
        if value in producers and producers[value].op_type in ("Identity", "Cast") and producers[value].input:
            value = producers[value].input[0]
    condition = known.value(value)
    return not condition.all() if condition is not None else value != body.input[1].name
