"""Pass `compute_parts_apart`: parts of a tensor wait for no other one, and their tables merge into what makes them.

Elementwise operations of concatenations become a concatenation of the results of the parts. A convolution of which a
table reads some channels becomes a concatenation of convolutions. A Slice reads the part in which it lies.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

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
        if len(edges) == 2 or not isinstance(node, Conv):
            nodes.append(node)
            continue
        results = []
        for number, (first, stop) in enumerate(pairwise(sorted(edges))):
            constants = {name: getattr(node, name)[first:stop] for name in ("weights", "bias", "mantissa", "shift")}
            own = replace(node, name=f"{node.name}/{number}", output=f"{node.output}/{number}", **constants)
            tensors[own.output] = _part(tensors[node.output], own.output, stop - first)
            nodes.append(own)
            results.append(own.output)
        nodes.append(Concat(name=node.name, inputs=tuple(results), output=node.output, origin=node.origin))
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


def _tabled(reader: Node, readers: Mapping[str, list[Node]]) -> tuple[int, ...]:
    """The first channel and the stop of those that a table reads through this reader, and no other reader."""
    after = readers[reader.output]
    slices = [n for n in ([reader] if isinstance(reader, Slice) else after) if isinstance(n, Slice)]
    through = [type(n) for n in after] == [Table] if isinstance(reader, Slice) else len(slices) == len(after)
    others = [n for n in readers[reader.inputs[0]] if n is not reader]
    if not isinstance(reader, Slice | Table) or not slices or not through:
        return ()
    start, stop = min(n.start for n in slices), max(n.stop for n in slices)
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
            results = []
            for number, inputs in enumerate(zip(*operands, strict=True)):
                own = replace(made, name=f"{made.name}/{number}", inputs=inputs, output=f"{made.output}/{number}")
                tensors[own.output] = _part(tensors[made.output], own.output, tensors[inputs[0]].channels)
                nodes.append(own)
                results.append(own.output)
            made = Concat(name=made.name, inputs=tuple(results), output=made.output, origin=made.origin)
        if isinstance(made, Concat):
            parts[made.output] = made.inputs
        nodes.append(made)
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


def _narrowed(piece: Slice, parts: tuple[str, ...], tensors: Mapping[str, Tensor]) -> Slice:
    """The slice, of the part in which it lies if there is one."""
    at = 0
    for part in parts:
        stop = at + tensors[part].channels
        if at <= piece.start and piece.stop <= stop:
            return replace(piece, inputs=(part,), start=piece.start - at, stop=piece.stop - at)
        at = stop
    return piece


def _part(whole: Tensor, name: str, channels: int) -> Tensor:
    return replace(whole, name=name, shape=(1, channels, whole.height, whole.width))
