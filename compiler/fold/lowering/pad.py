"""Pad with a constant along height and width: an average over single pixels, or padding of the convolution after it."""

from dataclasses import replace

import numpy as np

from intloom.compiler.fold.arithmetic.tabulation import clamp_table, requant_table
from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.spatial import SpatialOps, Steps
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.data_movement import pad_value
from intloom.compiler.fold.patterns.qparams import quantize
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import Model, OnnxNode
from intloom.compiler.refusals import Refusal


@lowers("Pad")
def lower_pad(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower padding with one value; negative padding crops."""
    main = unit.operator
    leaf = main.input(0)
    x, result = builder.image(leaf), builder.result(unit)
    borders = _borders(builder.model, main, len(x.shape))
    mover, name = SpatialOps(builder, unit.origins), unit_name(unit)
    tensor = x.tensor
    table = requant_table(builder, leaf, unit)
    if table is not None:
        node = builder.table_node(f"{name}/rescale", tensor.name, table, f"{result.name}/rescaled")
        like = replace(result, shape=tensor.shape)
        tensor = mover.emit(node, like, (tensor.height, tensor.width))
    rows, columns = (
        Steps(max(0, -a), size - max(0, -b)) for (a, b), size in zip(borders, tensor.shape[2:], strict=True)
    )
    if min(rows.count, columns.count) < 1:
        raise Refusal.INVALID("it crops everything", "remove the node")
    tensor = mover.pick(tensor, rows, columns, f"{result.name}/cut")
    (top, bottom), (left, right) = ((max(0, a), max(0, b)) for a, b in borders)
    padded = mover.pad(tensor, (top, left, bottom, right), _byte(builder, unit, main), result.name)
    builder.bind(unit.output, padded.name)
    builder.assign(unit, Target.VECTOR)


def _byte(builder: GraphBuilder, unit: QuantizationUnit, node: OnnxNode) -> int:
    """The padding value, quantized with the unit's parameters, as int8."""
    value = pad_value(builder.model, node)
    if value is None:
        raise Refusal.CONSTANT("its padding value is no constant number", "pad with a constant number")
    params = builder.params(unit)
    byte = int(quantize(np.array(value, np.float32), params)) - 128 * params.unsigned
    clamps = clamp_table(builder, unit)
    return byte if clamps is None else int(clamps[byte & 0xFF])


def _borders(model: Model, node: OnnxNode, rank: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Padding before and after, along height and along width."""
    if node.text("mode", "constant") != "constant":
        raise Refusal.SELECTION(f"it pads in mode {node.text('mode', '')}", "use mode constant")
    given = model.constant(node.input(1)) if node.input(1) else np.array(node.integers("pads", ()))
    axes = model.constant(node.input(3)) if node.input(3) else np.arange(rank)
    if given is None or axes is None or given.size != 2 * axes.size:
        raise Refusal.CONSTANT("its pads are not constants", "use constant pads")
    borders = [(0, 0)] * max(4, rank)
    for axis, first, last in zip(axes.ravel(), given.ravel()[: axes.size], given.ravel()[axes.size :], strict=True):
        borders[int(axis) % rank] = (int(first), int(last))
    if any(b != (0, 0) for b in borders[:2]):
        raise Refusal.SELECTION("it pads channels or the batch", "pad along height and width")
    return (borders[2], borders[3]) if rank > 3 else ((0, 0), borders[2])
