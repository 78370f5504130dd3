"""Division of the integer graph into regions, which run on the accelerator with host parts between them.

Every tensor has a level. Tensors that depend on the model's inputs only have level 0. Values that the host computes
from tensors of level k have level k + 1, and so have all tensors that depend on them. The nodes of one level are a
region. Each region is a program; before it, the host runs the part that computes its inputs.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter
from math import prod

from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.target import Finding, Target
from intloom.compiler.ir import IntGraph
from intloom.compiler.partition.host import before
from intloom.compiler.refusals import Refusal

MACS_PER_BYTE = 16
"""Minimum of multiply-accumulate operations per byte of input and output for a region after a host part."""

_REMEDY = "quantize the operators before it, so that no host part comes before it"


def tensor_levels(builder: GraphBuilder) -> dict[str, int]:
    """Compute the level of every tensor of the graph."""
    given = {stored: tensor for stored, (tensor, _) in builder.views.items() if tensor not in builder.inputs}
    operands = {n.output: n.inputs for n in builder.nodes.values()}
    # Of all entries at once: a model of many regions has many, and the host's part before each may be long.
    read: dict[str, frozenset[str]] = {}
    for made in before(builder.model, builder.host_computed, given):
        reads = frozenset[str]().union(*({given[v]} if v in given else read.get(v, ()) for v in made.reads))
        read |= dict.fromkeys(made.outputs, reads)
    operands |= {entry: tuple(read.get(entry, ())) for entry in builder.host_computed}
    levels: dict[str, int] = dict.fromkeys(builder.inputs, 0)
    # Not in the order of the nodes: what gives the host a value in the model's order may come after other nodes.
    for name in TopologicalSorter(operands).static_order():
        before_it = [levels[v] for v in operands.get(name, ())]
        levels[name] = max(before_it, default=0) + (name in builder.host_computed and bool(before_it))
    first: dict[str, int] = {}
    for node in builder.nodes.values():
        for value in node.inputs:
            first[value] = min(first.get(value, levels[node.output]), levels[node.output])
    # A constant belongs to the first region that reads it.
    levels |= {node.output: first.get(node.output, 0) for node in builder.nodes.values() if not node.inputs}
    return levels


def return_small_regions(builder: GraphBuilder) -> None:
    """Assign regions with little work to the host, and remove graph inputs that no node reads."""
    while True:
        read = {v for n in builder.nodes.values() for v in n.inputs}
        unread = [e for e in builder.host_computed if e not in read]
        for entry in unread:
            reason = "the host computes its input, and no multiplication depends on it"
            _return(builder, {entry}, Finding(Target.HOST, reason, _REMEDY, Refusal.HOST))
        levels = tensor_levels(builder)
        # One level at a time, lowest first: its return changes the levels of everything after it. Level 0 needs no
        # host part before it, so it always stays.
        thin = next((k for k in sorted(set(levels.values()) - {0}) if _is_small(builder, levels, k)), None)
        if thin is None:
            return
        reason = (
            f"after a host part it would do fewer than {MACS_PER_BYTE} multiplications per byte of input and output"
        )
        entries = {e for e in builder.host_computed if levels[e] == thin}
        _return(builder, entries, Finding(Target.HOST, reason, _REMEDY, Refusal.SMALL))


def _is_small(builder: GraphBuilder, levels: Mapping[str, int], level: int) -> bool:
    nodes = [n for n in builder.nodes.values() if levels[n.output] == level]
    made = {n.output for n in nodes}
    read = {v for n in nodes for v in n.inputs} - made
    inner = {v for n in nodes for v in n.inputs} & made
    # Only tensors that cross the region's border are moved between host and accelerator.
    crossing = sum(prod(builder.tensors[v].shape) for v in read | (made - inner))
    return sum(n.macs(builder.tensors) for n in nodes) < MACS_PER_BYTE * crossing


def _return(builder: GraphBuilder, entries: set[str], finding: Finding) -> None:
    """Remove graph inputs and everything that depends on them from the graph."""
    gone = set(entries)
    kept = []
    for node in builder.nodes.values():
        if gone & set(node.inputs):
            gone.add(node.output)
        else:
            kept.append(node)
    builder.nodes = {n.name: n for n in kept}
    builder.inputs[:] = [e for e in builder.inputs if e not in gone]
    builder.host_computed[:] = [e for e in builder.host_computed if e not in gone]
    held = {s: tensor for s, (tensor, _) in builder.views.items()}
    held = {s: order.tensor for s, order in builder.orders.items()} | held
    for stored in [s for s, tensor in held.items() if tensor in gone]:
        builder.views.pop(stored, None)
        builder.orders.pop(stored, None)
        builder.left_in_order.pop(stored, None)
        for name in builder.producing_nodes.get(stored, ()):
            if builder.findings.get(name, finding).target is not Target.HOST:
                builder.findings[name] = finding
    for name in gone:
        builder.tensors.pop(name, None)


def without_unread_inputs(graph: IntGraph, late: Collection[str]) -> IntGraph:
    """Remove host-computed inputs that no node reads."""
    read = {v for n in graph.nodes for v in n.inputs}
    gone = {v for v in graph.inputs if v in late and v not in read}
    tensors = {v: t for v, t in graph.tensors.items() if v not in gone}
    return replace(graph, tensors=tensors, inputs=tuple(v for v in graph.inputs if v not in gone))


def split(graph: IntGraph, levels: Mapping[str, int]) -> tuple[IntGraph, ...]:
    """Regions in execution order; empty if the graph has no nodes.

    The inputs of a region come from the host or from earlier regions.
    """
    regions, levels = [], dict(levels)
    for node in graph.nodes:
        if node.output not in levels:  # a pass has added it
            levels[node.output] = max(levels[v] for v in node.inputs)
    for level in range(max(levels.values(), default=0) + 1):
        nodes = tuple(n for n in graph.nodes if levels[n.output] == level)
        made = {n.output for n in nodes}
        read = {v for n in nodes for v in n.inputs} - made
        if level == 0:
            read |= {v for v in graph.inputs if levels[v] == 0}
        later = {v for n in graph.nodes if levels[n.output] > level for v in n.inputs}
        inputs = tuple(v for v in graph.tensors if v in read)
        outputs = tuple(n.output for n in nodes if n.output in later or n.output in graph.outputs)
        tensors = {v: t for v, t in graph.tensors.items() if v in read or v in made}
        if nodes:
            name = graph.name if level == 0 else f"{graph.name}.{level}"
            regions.append(IntGraph(name, tensors, nodes, inputs, outputs))
    return tuple(regions)
