"""Pass `compute_parts_apart`: parts of a tensor wait for no other one, and their tables merge into what makes them.

Elementwise operations of concatenations become a concatenation of the results of the parts. A convolution of which a
table reads some channels becomes a concatenation of convolutions. A Slice reads the part in which it lies.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from intloom.compiler.ir import Concat, Conv, IntGraph, Node, Slice, Table
from intloom.compiler.ir.elementwise import Elementwise
from intloom.compiler.ir.graph import without_dead_nodes
from intloom.compiler.ir.tensor import Tensor


def compute_parts_apart(graph: IntGraph) -> IntGraph:
    """Apply the pass."""
    apart = without_dead_nodes(_process_parts(graph))
    return _process_parts(_split_convs(apart))


def _split_convs(graph: IntGraph) -> IntGraph:
    """Cut convolutions where a table reads a part of the result."""
    readers: dict[str, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for value in node.inputs:
            readers[value].append(node)
    nodes, tensors = list[Node](), dict(graph.tensors)
    for node in graph.nodes:
        edges = {0, graph.tensors[node.output].channels}
        # A depthwise or transposed convolution has no channels that stand alone.
        if type(node) is Conv and node.group == 1:
            edges |= {edge for n in readers[node.output] for edge in _tabled(n, readers)}
        if len(edges) == 2:
            nodes.append(node)
            continue
        ranges = [slice(*edge) for edge in pairwise(sorted(edges))]
        fields = [{name: getattr(node, name)[r] for name in _PER_CHANNEL} for r in ranges]
        nodes += _apart(node, fields, [r.stop - r.start for r in ranges], tensors)
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


_PER_CHANNEL = ("weights", "bias", "mantissa", "shift")
"""Fields of a convolution with an entry for each output channel."""


def _tabled(reader: Node, readers: Mapping[str, list[Node]]) -> tuple[int, ...]:
    """The first channel and the stop of those that a table reads through this reader, and no other reader."""
    after = readers[reader.output]
    slices = [n for n in after if isinstance(n, Slice)]
    if isinstance(reader, Slice) and [type(n) for n in after] == [Table]:
        start, stop = reader.start, reader.stop
    elif isinstance(reader, Table) and slices and len(slices) == len(after):
        start, stop = min(n.start for n in slices), max(n.stop for n in slices)
    else:
        return ()
    others = [n for n in readers[reader.inputs[0]] if n is not reader]
    apart = all(isinstance(n, Slice) and (n.stop <= start or stop <= n.start) for n in others)
    return (start, stop) if apart else ()


def _process_parts(graph: IntGraph) -> IntGraph:
    """Apply elementwise operations to the parts of concatenations, and let slices read parts."""
    nodes, tensors = list[Node](), dict(graph.tensors)
    parts: dict[str, tuple[str, ...]] = {}
    """For results of Concats, the parts."""
    same: dict[str, str] = {}
    """For slices that are a part, that part."""
    for node in graph.nodes:
        made: Node = replace(node, inputs=tuple(same.get(v, v) for v in node.inputs))
        operands = [parts[v] for v in made.inputs if v in parts]
        splits = {tuple(tensors[v].channels for v in operand) for operand in operands}
        if isinstance(made, Slice) and operands:
            made = _narrowed(made, operands[0], tensors)
            if tensors[made.inputs[0]].channels == made.stop - made.start and made.output not in graph.outputs:
                same[made.output] = made.inputs[0]
                del tensors[made.output]
                continue
        elif isinstance(made, Table | Elementwise) and len(operands) == len(made.inputs) and len(splits) == 1:
            fields = [{"inputs": inputs} for inputs in zip(*operands, strict=True)]
            *apart, made = _apart(made, fields, next(iter(splits)), tensors)
            nodes += apart
        if isinstance(made, Concat):
            parts[made.output] = made.inputs
        nodes.append(made)
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


def _apart(
    node: Node, fields: Sequence[Mapping[str, Any]], channels: Sequence[int], tensors: dict[str, Tensor]
) -> list[Node]:
    """A node for each part of a result, with these fields and channels, and the concatenation of their results."""
    whole, made = tensors[node.output], list[Node]()
    for number, (own, count) in enumerate(zip(fields, channels, strict=True)):
        output = f"{node.output}/{number}"
        tensors[output] = replace(whole, name=output, shape=(1, count, whole.height, whole.width))
        made.append(replace(node, name=f"{node.name}/{number}", output=output, **own))
    inputs = tuple(n.output for n in made)
    return [*made, Concat(name=node.name, inputs=inputs, output=node.output, origin=node.origin)]


def _narrowed(piece: Slice, parts: tuple[str, ...], tensors: Mapping[str, Tensor]) -> Slice:
    """The slice, of the part in which it lies if there is one."""
    at = 0
    for part in parts:
        stop = at + tensors[part].channels
        if at <= piece.start and piece.stop <= stop:
            return replace(piece, inputs=(part,), start=piece.start - at, stop=piece.stop - at)
        at = stop
    return piece
