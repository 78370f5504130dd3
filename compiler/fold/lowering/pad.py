"""Pad with a constant: along height and width an average over single pixels, or padding of the convolution after it.

Along channels, it is joined with constants.
"""

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
from intloom.compiler.ir import Tensor
from intloom.compiler.refusals import Refusal

_MOST_REPEATED = 8
"""Each repeated row or column is a convolution and an addition of the image."""


@lowers("Pad")
def lower_pad(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower padding with one value, or with up to 8 rows and columns of the image; negative padding crops."""
    main = unit.operator
    x, result = builder.image(main.input(0)), builder.result(unit)
    channels, *borders = _borders(builder.model, main, len(x.shape))
    mover, name = SpatialOps(builder, unit.origins), unit_name(unit)
    tensor = x.tensor
    table = requant_table(builder, unit)
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
    if any(channels):
        byte = _byte(builder, unit, main)
        if top or left or bottom or right:
            tensor = mover.pad(tensor, (top, left, bottom, right), byte, f"{result.name}/image")
        padded = _with_channels(builder, unit, tensor, channels, byte)
    elif main.text("mode", "constant") == "constant":
        padded = mover.pad(tensor, (top, left, bottom, right), _byte(builder, unit, main), result.name)
    else:
        reflected = main.text("mode", "constant") == "reflect"
        padded = repeated(mover, tensor, ((top, bottom), (left, right)), result.name, reflected=reflected)
    builder.bind(unit.output, padded.name)
    builder.assign(unit, Target.VECTOR)


def _with_channels(
    builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, counts: tuple[int, int], byte: int
) -> Tensor:
    """The image with so many channels of one byte before and after its own."""
    parts = [x]
    for last, count in enumerate(counts):
        if count:
            values = np.full((count, x.height, x.width), byte, np.int8)
            part = builder.constant(f"{unit.output}/channels{last}", values, unit.origins, x)
            parts.insert(len(parts) * last, part)
    return builder.join(parts, unit.output, name=unit_name(unit), origin=unit.origins)


def repeated(
    mover: SpatialOps, x: Tensor, borders: tuple[tuple[int, int], tuple[int, int]], name: str, *, reflected: bool
) -> Tensor:
    """The image with rows, then columns, of itself around it."""
    if sum(map(sum, borders)) > _MOST_REPEATED:
        raise Refusal.SELECTION(f"it repeats {borders} rows and columns", f"at most {_MOST_REPEATED} are supported")
    for axis, (before, after) in enumerate(borders):
        length = (x.height, x.width)[axis]
        if not before and not after:
            continue
        if reflected and max(before, after) >= length:
            raise Refusal.INVALID("it reflects more than the image", "correct the model")
        taken = [before - i if reflected else 0 for i in range(before)]
        taken += [length - 2 - i if reflected else length - 1 for i in range(after)]
        parts = [(x, (0, before) if axis else (before, 0))]
        for number, source in enumerate(taken):
            line, whole = Steps(source, source + 1), Steps(0, (x.width, x.height)[axis])
            picked = mover.pick(x, *((whole, line) if axis else (line, whole)), f"{name}/line{axis}.{number}")
            at = number if number < before else length + number
            parts.append((picked, (0, at) if axis else (at, 0)))
        size = (x.height, x.width + before + after) if axis else (x.height + before + after, x.width)
        x = mover.join(parts, size, f"{name}/axis{axis}")
    return x


def _byte(builder: GraphBuilder, unit: QuantizationUnit, node: OnnxNode) -> int:
    """The padding value, quantized with the unit's parameters, as int8."""
    value = pad_value(builder.model, node)
    if value is None:
        raise Refusal.CONSTANT("its padding value is no constant number", "pad with a constant number")
    params = builder.params(unit)
    byte = int(quantize(np.array(value, np.float32), params)) - 128 * params.unsigned
    clamps = clamp_table(builder, unit)
    return byte if clamps is None else int(clamps[byte & 0xFF])


def _borders(model: Model, node: OnnxNode, rank: int) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Padding before and after, along channels, height and width."""
    if node.text("mode", "constant") not in ("constant", "edge", "reflect"):
        raise Refusal.SELECTION(f"it pads in mode {node.text('mode', '')}", "use mode constant, edge or reflect")
    given = model.constant(node.input(1)) if node.input(1) else np.array(node.integers("pads", ()))
    axes = model.constant(node.input(3)) if node.input(3) else np.arange(rank)
    if given is None or axes is None or given.size != 2 * axes.size:
        raise Refusal.CONSTANT("its pads are not constants", "use constant pads")
    borders = [(0, 0)] * max(4, rank)
    for axis, first, last in zip(axes.ravel(), given.ravel()[: axes.size], given.ravel()[axes.size :], strict=True):
        borders[int(axis) % rank] = (int(first), int(last))
    _, channels, *image = borders  # a padded batch is refused with the result's shape
    if min(channels) < 0 or (any(channels) and node.text("mode", "constant") != "constant"):
        raise Refusal.SELECTION("it pads channels otherwise than with a constant", "pad images, with mode constant")
    return (channels, image[0], image[1]) if rank > 3 else (channels, (0, 0), image[0])
