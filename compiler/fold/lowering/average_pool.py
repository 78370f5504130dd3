"""GlobalAveragePool, AveragePool, ReduceMean and ReduceSum over the pixels of each channel: scaled sums of windows.

Over the channels of each pixel, they are convolutions.
"""

from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from intloom.compiler.fold.arithmetic.affine_fit import IDENTITY, SampledFunction, fit_affine_with_table
from intloom.compiler.fold.arithmetic.integer_average import average_scale, averages, divisor, float_distance
from intloom.compiler.fold.arithmetic.irregular_ties import emit_bracket, fit_bracket
from intloom.compiler.fold.arithmetic.tabulation import clamp_table
from intloom.compiler.fold.byte_order import as_rows
from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.long_sums import emit_long_sum, windows_of_blocks
from intloom.compiler.fold.lowering.common.spatial import SpatialOps, Steps
from intloom.compiler.fold.lowering.common.tokens import bind_tokens, rows_along, token_results
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.reduction import reduced_axes
from intloom.compiler.fold.patterns.window import Window, read_pool
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import OnnxNode
from intloom.compiler.ir import AvgPool, Conv, MatMul, Tensor
from intloom.compiler.ir.node import Pair
from intloom.compiler.limits import LARGEST_WINDOW
from intloom.compiler.refusals import Refusal

_LARGEST_SUM = 1 << 17
"""The vector unit's window sums have 18 bits with the sign: 1024 bytes of -128."""
_MOST_AREAS = 9
"""Three kinds of windows along each axis: at the start, inside, at the end."""
_PROVED = "proved at every sum of a window"


@lowers("GlobalAveragePool", "AveragePool", "ReduceMean", "ReduceSum")
def lower_average(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower an average over windows, whose border may count the padding or not, or one, or a sum, over whole axes."""
    main = unit.operator
    if main.op == "AveragePool":
        x, result = builder.image(main.input(0)).tensor, builder.result(unit)
        geometry = read_pool(main, x)
        if any(geometry.pads) and not main.integer("count_include_pad", 0):
            _lower_areas(builder, unit, x, result, geometry)
            return
    elif (axis := _channel_axis(builder, main)) is not None:
        _lower_channels(builder, unit, axis)
        return
    else:
        x, kernel = _windows(builder, main)
        size = x.height // kernel[0], x.width // kernel[1]
        result = builder.tensor(unit.output, (1, x.channels, *size), builder.params(unit))
        geometry = Window(kernel, (1, 1), (1, 1), (0, 0, 0, 0))
    made = _average_of(builder, unit, x, result, geometry)
    builder.bind(unit.output, made.name)
    builder.assign(unit, _target({geometry.kernel}), _definition(unit, x, result, {prod(geometry.kernel)}))


def _is_long(kernel: Pair) -> bool:
    """Whether the vector unit cannot sum the window, so that the array does."""
    return 128 * prod(kernel) > _LARGEST_SUM or max(kernel) > LARGEST_WINDOW


def _target(kernels: set[Pair]) -> Target:
    return Target.ARRAY if any(map(_is_long, kernels)) else Target.VECTOR


def _definition(unit: QuantizationUnit, x: Tensor, result: Tensor, sizes: set[int]) -> str:
    """How the results of windows with these numbers of pixels relate to onnxruntime's."""
    if unit.operator.op == "GlobalAveragePool" and not unit.clamps:
        return _PROVED
    # A sum is an average with a scale that is as many times smaller.
    scales = {size: result.scale * divisor(unit.operator.op, size) / size for size in sizes}
    distance = max(float_distance(x, replace(result, scale=scale), size) for size, scale in scales.items())
    return f"integers within {distance} of the float result" if distance else _PROVED


def _lower_areas(builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, result: Tensor, geometry: Window) -> None:
    """Lower windows at the border, which average fewer pixels: one node for each area of equal windows, then a join."""
    rows, columns = (_areas(geometry, axis, (x.height, x.width)[axis]) for axis in (0, 1))
    if len(rows) * len(columns) > _MOST_AREAS:
        raise Refusal.WINDOW(
            f"its windows at the border average fewer pixels, in {len(rows) * len(columns)} ways",
            "pad first, or set count_include_pad",
        )
    mover, parts = SpatialOps(builder, unit.origins), []
    for number, (row, column) in enumerate(product(rows, columns)):
        name = f"{result.name}/area{number}"
        cut = mover.pick(x, row.read, column.read, f"{name}/cut")
        inner = Window((row.size, column.size), geometry.strides, (1, 1), (0, 0, 0, 0))
        like = replace(result, name=name, shape=(1, x.channels, row.count, column.count))
        parts.append((_average_of(builder, unit, cut, like, inner), (row.first, column.first)))
    whole = mover.join(parts, (result.height, result.width), result.name)
    builder.bind(unit.output, whole.name)
    kernels = {(row.size, column.size) for row, column in product(rows, columns)}
    definition = _definition(unit, x, result, {prod(k) for k in kernels})
    builder.assign(unit, _target(kernels), f"windows at the border by themselves; {definition}")


@dataclass(frozen=True)
class _Area:
    """Neighboring outputs along one axis whose windows contain the same number of pixels."""

    first: int
    count: int
    size: int
    read: Steps


def _areas(geometry: Window, axis: int, length: int) -> list[_Area]:
    spans, stride = geometry.inside(axis, length), geometry.strides[axis]
    starts, sizes = [first for first, _ in spans], [stop - first for first, stop in spans]
    areas = []
    first = 0
    for i in range(1, len(spans) + 1):
        # Next to a border, a window of equal size may not start one stride after the previous one.
        if i < len(spans) and sizes[i] == sizes[first] and starts[i] == starts[i - 1] + stride:
            continue
        read = Steps(starts[first], starts[i - 1] + sizes[first])
        areas.append(_Area(first, i - first, sizes[first], read))
        first = i
    return areas


def _average_of(builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, result: Tensor, geometry: Window) -> Tensor:
    """Emit the average of all windows of `x`, with an affine operation that is the integer average at every sum."""
    size = geometry.kernel[0] * geometry.kernel[1]
    if _is_long(geometry.kernel):
        return _product(builder, unit, x, result, geometry)
    sums = np.arange(-128 * size, 127 * size + 1, dtype=np.int64)
    count = divisor(unit.operator.op, size)
    clamps, ratios = clamp_table(builder, unit), (x.scale / (count * result.scale), 0.0)
    truth = averages(sums - size * x.zero_point, x, result, count, builder.options.match)
    if clamps is not None:
        truth = clamps[truth & 0xFF].astype(np.int64)
    goal = SampledFunction(sums, np.zeros_like(sums), truth, clamps)
    node = AvgPool(
        name=_name(unit, result),
        inputs=(x.name,),
        output=result.name,
        kernel=geometry.kernel,
        affine=IDENTITY,
        zp_in=x.zero_point,
        strides=geometry.strides,
        pads=geometry.pads,
        origin=unit.origins,
    )
    fitted = fit_affine_with_table(goal, ratios)
    if fitted is not None:
        affine, table = fitted
        builder.emit(replace(node, affine=affine, table=None if table is None else table.tobytes()), result)
        return result
    bracket = fit_bracket(goal, ratios[0])
    if bracket is None:
        raise Refusal.NO_INTEGERS("no integer constants give its average at every sum", "change its scale slightly")
    emit_bracket(builder, node, result, bracket, goal.clamps)
    return result


def _name(unit: QuantizationUnit, result: Tensor) -> str:
    """The name of the node that computes a unit's result, or a part of it."""
    return unit_name(unit) + result.name.removeprefix(unit.output)


def _product(builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, result: Tensor, geometry: Window) -> Tensor:
    """Emit averages of more pixels than the vector unit adds: a product of weights with the transposed image.

    Each window has a weight for every pixel of the image. The array's sums have 32 bits, and its requantization
    defines the result.
    """
    steps, chosen = windows_of_blocks(geometry, x)
    scale = average_scale(x, result, divisor(unit.operator.op, geometry.kernel[0] * geometry.kernel[1]))
    table = clamp_table(builder, unit)
    long_sum = emit_long_sum(SpatialOps(builder, unit.origins), x, f"{result.name}/sum", steps)
    weights, count = f"{result.name}/weights", long_sum.weights.size
    every = np.tile(chosen, (count // len(chosen), 1, 1)) * long_sum.weights[:, None, None]
    builder.constant(weights, every, unit.origins)
    node = MatMul(
        name=_name(unit, result),
        inputs=(weights, long_sum.pixels.name),
        output=result.name,
        mantissa=scale.mantissa,
        shift=scale.shift,
        zp_a=0,
        zp_b=long_sum.pixels.zero_point,
        zp_out=result.zero_point,
        table=None if table is None else table.tobytes(),
        origin=unit.origins,
    )
    builder.emit(node, result)
    return result


def _channel_axis(builder: GraphBuilder, node: OnnxNode) -> int | None:
    """The one axis that is averaged over, if it is the channels of an image or the last of tokens."""
    x, ordered = builder.operand_in_any_order(node.input(0)), builder.ordered(node.input(0))
    axes = [a for a in reduced_axes(builder.model, node, len(x.shape)) if x.shape[a] > 1]
    if ordered is None or len(axes) != 1:
        return None
    pixels = x.tensor.height * x.tensor.width
    matrix = np.moveaxis(ordered.positions, axes[0], -1).reshape(-1, x.shape[axes[0]])
    return None if as_rows(matrix, pixels) is None or pixels == 1 else axes[0]


def _lower_channels(builder: GraphBuilder, unit: QuantizationUnit, axis: int) -> None:
    """Lower an average over the channels of each pixel: a convolution with weights of 1."""
    rows = rows_along(builder, unit, unit.operator.input(0), axis)
    results, table = token_results(builder, unit, rows, 1), clamp_table(builder, unit)
    (x,), (result,) = rows.parts, results.parts
    scale = average_scale(x, result, divisor(unit.operator.op, x.channels))
    node = Conv(
        name=unit_name(unit),
        inputs=(x.name,),
        output=result.name,
        weights=np.ones((1, x.channels, 1, 1), np.int8),
        bias=np.array([-x.channels * x.zero_point], np.int32),
        mantissa=np.array([scale.mantissa], np.uint32),
        shift=np.array([scale.shift], np.uint8),
        zp_in=x.zero_point,
        zp_out=result.zero_point,
        table=None if table is None else table.tobytes(),
        origin=unit.origins,
    )
    builder.emit(node, result)
    bind_tokens(builder, unit, results)
    builder.assign(unit, Target.ARRAY, _definition(unit, x, result, {x.channels}))


def _windows(builder: GraphBuilder, node: OnnxNode) -> tuple[Tensor, Pair]:
    """A tensor, and the windows of it that are averaged: images, rows or columns; they may be rows of a matrix."""
    x, ordered = builder.operand_in_any_order(node.input(0)), builder.ordered(node.input(0))
    assert ordered is not None  # the operand is of the graph
    axes = reduced_axes(builder.model, node, len(x.shape))
    kept = [a for a in range(len(x.shape)) if a not in axes]
    values = np.sort(ordered.positions.transpose(*kept, *axes).reshape(prod(x.shape[a] for a in kept), -1))
    _, channels, height, width = x.tensor.shape
    every = np.arange(prod(x.tensor.shape))
    for rows, columns in ((height, width), (1, width), (height, 1)):
        blocks = every.reshape(channels, height // rows, rows, width // columns, columns)
        if np.array_equal(values, blocks.swapaxes(2, 3).reshape(-1, rows * columns)):
            return x.tensor, (rows, columns)
    raise Refusal.WINDOW(
        f"it averages over axes {axes} of {x.shape}, which are not all pixels, rows or columns of each channel",
        "average over height and width",
    )
