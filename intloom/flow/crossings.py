"""Cost of every change between host and accelerator, and the nodes that cause it."""

from dataclasses import dataclass

import onnx

from intloom.compiler.frontend import FoldedModel, Target
from intloom.compiler.ir import IntGraph
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True)
class Crossing:
    """The transfers of one region and the host nodes before it."""

    region: int
    bytes_in: int
    bytes_out: int
    cycles: int
    """Cycles of the bus for both, at one word a cycle."""
    host_nodes: tuple[str, ...]
    """Nodes that the host runs before the region, without QuantizeLinear and DequantizeLinear."""
    remedy: str
    """What to change so that the first of them runs on the accelerator."""


def find_crossings(folded: FoldedModel, params: HardwareParams) -> tuple[Crossing, ...]:
    """The crossings of all regions in order, for the word size of `params`."""
    rows = {a.name: a for a in folded.assignments if a.target is Target.HOST}
    crossings = []
    for index, (region, part) in enumerate(zip(folded.regions, folded.host_parts, strict=True)):
        names = () if part is None else tuple(n.name for n in onnx.ModelProto.FromString(part).graph.node)
        nodes = [rows[n] for n in names if n in rows and "quantizelinear" not in rows[n].op.lower()]
        taken, given = (_bytes(region, values, params.rows) for values in (region.inputs, region.outputs))
        remedy = f"{nodes[0].name}: {nodes[0].reason}: {nodes[0].remedy}" if nodes else ""
        cycles = (taken + given) // params.rows
        crossings.append(Crossing(index, taken, given, cycles, tuple(n.name for n in nodes), remedy))
    return tuple(crossings)


def _bytes(region: IntGraph, names: tuple[str, ...], rows: int) -> int:
    """Bytes of tensors in blocked format, in which channels fill whole words."""
    shapes = [region.tensors[n].shape for n in names]
    return sum(-(-channels // rows) * rows * height * width for _, channels, height, width in shapes)
