"""GlobalAveragePool, AveragePool and ReduceMean over height and width: scaled sums of windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import EncodingError
from intloom.compiler.fold.arithmetic.affine_fit import IDENTITY, SampledFunction, fit_affine_with_table
from intloom.compiler.fold.arithmetic.irregular_ties import emit_bracket, fit_bracket
from intloom.compiler.fold.arithmetic.runtime_evaluation import evaluate, to_int8, to_stored
from intloom.compiler.fold.arithmetic.tabulation import Int8s, clamp_table, vector_model
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.common.long_sums import emit_long_sum, step_count
from intloom.compiler.fold.lowering.common.spatial import SpatialOps, Steps
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.unsupported import UnsupportedPattern
from intloom.compiler.fold.patterns.window import Window, read_window
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import Model, OnnxNode, ValueType
from intloom.compiler.ir import AvgPool, Constant, MatMul, Tensor
from intloom.hw.spec.arith import Scale, requantize, scale_from_float

_LARGEST_SUM = 1 << 17
"""The vector unit's window sums have 18 bits with the sign: 1024 bytes of -128."""
_SAMPLED_SUMS = 64
_MOST_VALUES = 1 << 23
"""Values that onnxruntime averages at once; they are floats then."""
_TIE = 2.0**-18
_ONE_IN = 10_000
_MOST_AREAS = 9
"""Three kinds of windows along each axis: at the start, inside, at the end."""


@lowers("GlobalAveragePool", "AveragePool", "ReduceMean")
def lower_average(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower an average over windows; windows at the border count the pixels inside the image, or the padding too."""
    main = unit.operator
    leaf = main.input(0)
    x, result = builder.image(leaf), builder.result(unit)
    geometry = _geometry(builder.model, main, x)
    if any(geometry.pads) and not main.integer("count_include_pad", 0):
        _lower_areas(builder, unit, leaf, x.tensor, result, geometry)
        return
    size = geometry.kernel[0] * geometry.kernel[1]
    if 128 * size > _LARGEST_SUM and size == x.tensor.height * x.tensor.width:
        _lower_product(builder, unit, leaf, x.tensor, result)
        return
    made = _average_of(builder, unit, leaf, x.tensor, result, geometry, unit_name(unit), result.name)
    builder.bind(unit.output, made.name)
    builder.assign(unit, Target.VECTOR, "proved at every sum of a window")


def _lower_product(builder: GraphBuilder, unit: QuantizationUnit, leaf: str, x: Tensor, result: Tensor) -> None:
    """Lower an average of more pixels than the vector unit adds: a product of weights with the transposed image.

    The array's sums have 32 bits, and its requantization has the formula of onnxruntime's integer average.
    """
    size = x.height * x.width
    if step_count(x.height, x.width) is None:
        raise UnsupportedPattern(
            f"it averages {x.height} by {x.width} pixels; two steps of 16 pixels each leave more than the array adds",
            "average in two steps, each with a QuantizeLinear",
        )
    scale = _scale_of(x, result, size)
    table = clamp_table(builder, unit)
    sums = _compare_sampled(builder, unit, leaf, x, result, scale, table)
    _warn_of_ties(builder, unit, sums, x, result, size)
    found = emit_long_sum(SpatialOps(builder, unit.origins), x, f"{result.name}/sum")
    name, count = f"{result.name}/weights", found.weights.size
    values = found.weights.reshape(count, 1, 1)
    builder.emit(
        Constant(name=name, inputs=(), output=name, values=values, origin=unit.origins),
        Tensor(name, (1, count, 1, 1), 1.0, 0, False),
    )
    node = MatMul(
        name=unit_name(unit),
        inputs=(name, found.pixels.name),
        output=result.name,
        mantissa=scale.mantissa,
        shift=scale.shift,
        zp_a=0,
        zp_b=found.pixels.zero_point,
        zp_out=result.zero_point,
        table=None if table is None else table.tobytes(),
    )
    builder.finish(unit, node, result, Target.ARRAY)


def _scale_of(x: Tensor, result: Tensor, size: int) -> Scale:
    """The factor of a sum, rounded as in onnxruntime."""
    try:
        return scale_from_float(float(np.float32(x.scale) / (np.float32(result.scale) * np.float32(size))))
    except EncodingError as error:
        raise UnsupportedPattern(str(error), "quantize the model again") from None


def _compare_sampled(
    builder: GraphBuilder,
    unit: QuantizationUnit,
    leaf: str,
    x: Tensor,
    result: Tensor,
    scale: Scale,
    table: Int8s | None,
) -> NDArray[np.int64]:
    """Check the formula on sums next to every rounding boundary, and on others; all sums would be too many values.

    Returns the sums next to boundaries that are inside the range of results.

    Raises
    ------
    UnsupportedPattern
        onnxruntime has another result.
    """
    size = x.height * x.width
    factor = x.scale / (result.scale * size)
    boundaries = (np.arange(-128, 128) + 0.5 - result.zero_point) / factor + size * x.zero_point
    near = np.floor(boundaries).astype(np.int64)
    spread = np.linspace(-128 * size, 127 * size, _SAMPLED_SUMS).astype(np.int64)
    sums = np.unique(np.clip([*near, *(near + 1), *spread], -128 * size, 127 * size))
    made = [requantize(int(s) - size * x.zero_point, scale, result.zero_point, builder.match) for s in sums]
    if table is not None:
        made = [int(table[byte & 0xFF]) for byte in made]
    parts = np.array_split(sums, -(-sums.size * size // _MOST_VALUES))
    truth = np.concatenate([_average(builder, unit, leaf, _windows(p, size)) for p in parts])
    if not np.array_equal(made, truth):
        raise UnsupportedPattern(f"its average of {size} pixels differs from onnxruntime", "average in two steps")
    least, most = (-128, 127) if table is None else (int(table.min()), int(table.max()))
    return sums[(truth > least) & (truth < most)]


def _lower_areas(
    builder: GraphBuilder, unit: QuantizationUnit, leaf: str, x: Tensor, result: Tensor, geometry: Window
) -> None:
    """Lower windows at the border, which average fewer pixels: one node for each area of equal windows, then a join."""
    rows, columns = (_areas(geometry, axis, (x.height, x.width)[axis], result.shape[2 + axis]) for axis in (0, 1))
    if len(rows) * len(columns) > _MOST_AREAS:
        raise UnsupportedPattern(
            f"its windows at the border average fewer pixels, in {len(rows) * len(columns)} ways",
            "pad first, or set count_include_pad",
        )
    mover, parts = SpatialOps(builder, unit.origins), []
    for number, (row, column) in enumerate(product(rows, columns)):
        name = f"{result.name}/area{number}"
        cut = mover.pick(x, row.read, column.read, f"{name}/cut")
        inner = Window((row.size, column.size), geometry.strides, (1, 1), (0, 0, 0, 0))
        like = replace(result, name=name, shape=(1, x.channels, row.count, column.count))
        made = _average_of(builder, unit, leaf, cut, like, inner, f"{unit_name(unit)}/area{number}", name)
        parts.append((made, (row.first, column.first)))
    whole = mover.join(parts, (result.height, result.width), result.name)
    builder.bind(unit.output, whole.name)
    builder.assign(unit, Target.VECTOR, "windows at the border by themselves; proved at every sum")


@dataclass(frozen=True)
class _Area:
    """Neighboring outputs along one axis whose windows contain the same number of pixels."""

    first: int
    count: int
    size: int
    read: Steps


def _areas(geometry: Window, axis: int, length: int, outputs: int) -> list[_Area]:
    kernel, stride, pad = geometry.kernel[axis], geometry.strides[axis], geometry.pads[axis]
    starts = [max(0, i * stride - pad) for i in range(outputs)]
    sizes = [min(length, i * stride - pad + kernel) - s for i, s in enumerate(starts)]
    found = []
    first = 0
    for i in range(1, outputs + 1):
        # Next to a border, a window of equal size may not start one stride after the previous one.
        if i < outputs and sizes[i] == sizes[first] and starts[i] == starts[i - 1] + stride:
            continue
        read = Steps(starts[first], starts[i - 1] + sizes[first])
        found.append(_Area(first, i - first, sizes[first], read))
        first = i
    return found


def _average_of(
    builder: GraphBuilder,
    unit: QuantizationUnit,
    leaf: str,
    x: Tensor,
    result: Tensor,
    geometry: Window,
    name: str,
    output: str,
) -> Tensor:
    """Emit the average of all windows of `x`, with an affine operation that equals onnxruntime at every sum."""
    size = geometry.kernel[0] * geometry.kernel[1]
    if 128 * size > _LARGEST_SUM:
        raise UnsupportedPattern(
            f"its window of {geometry.kernel[0]} by {geometry.kernel[1]} has sums up to {128 * size}; the vector "
            f"unit adds up to {_LARGEST_SUM}",
            f"average at most {_LARGEST_SUM // 128} pixels at once: in two steps, each with a QuantizeLinear",
        )
    sums, truth = _every_sum(builder, unit, leaf, size)
    clamps, ratios = clamp_table(builder, unit), (x.scale / (size * result.scale), 0.0)
    goal = SampledFunction(sums, np.zeros_like(sums), truth, clamps)
    node = AvgPool(
        name=name,
        inputs=(x.name,),
        output=output,
        kernel=geometry.kernel,
        affine=IDENTITY,
        zp_in=x.zero_point,
        strides=geometry.strides,
        pads=geometry.pads,
        origin=unit.origins,
    )
    least, most = goal.limits
    _warn_of_ties(builder, unit, sums[(truth > least) & (truth < most)], x, result, size)
    found = fit_affine_with_table(goal.x1, goal.x2, goal.result, ratios, goal.clamps)
    if found is not None:
        affine, table = found
        builder.emit(replace(node, affine=affine, table=None if table is None else table.tobytes()), result)
        return result
    bracket = fit_bracket(goal, ratios[0])
    if bracket is None:
        raise UnsupportedPattern("no integer constants equal onnxruntime at every sum", "change its scale slightly")
    emit_bracket(builder, node, result, bracket, goal.clamps)
    return result


def _warn_of_ties(
    builder: GraphBuilder, unit: QuantizationUnit, sums: NDArray[np.int64], x: Tensor, result: Tensor, size: int
) -> None:
    """Warn of averages in float whose rounding ties are many; `sums` are those with results that are not clamped."""
    main = unit.operator
    if main.op != "GlobalAveragePool" and main.qoperator is None and _many_ties(sums, x, result, size):
        builder.warnings[main.name] = (
            f"{main.name!r}: onnxruntime averages in float, and with these scales many averages are ties, which "
            "it rounds depending on the order of the values. Single results may differ by one. Change its scale"
        )


def _many_ties(sums: NDArray[np.int64], x: Tensor, result: Tensor, size: int) -> bool:
    """Whether more than one sum in 10,000 gives a rounding tie, where the result depends on the order of summation."""
    value = (sums - size * x.zero_point) * (x.scale / (size * result.scale)) + result.zero_point
    tied = np.abs(value - np.floor(value) - 0.5) < _TIE
    return bool(np.count_nonzero(tied) * _ONE_IN > 255 * size + 1)


def _geometry(model: Model, node: OnnxNode, x: Operand) -> Window:
    size = (x.tensor.height, x.tensor.width)
    if node.op == "AveragePool":
        found = read_window(node, x.tensor)
        if found.dilations != (1, 1):
            raise UnsupportedPattern("its window is dilated", "use dilations of 1")
        return found
    if node.op == "ReduceMean" and _axes(model, node, len(x.shape)) != tuple(range(2, len(x.shape))):
        raise UnsupportedPattern("it averages over other axes than height and width", "average over height and width")
    return Window(size, (1, 1), (1, 1), (0, 0, 0, 0))


def _axes(model: Model, node: OnnxNode, rank: int) -> tuple[int, ...]:
    axes = node.integers("axes", ())
    given = model.constant(node.input(1)) if node.input(1) else None
    if given is not None:
        axes = tuple(int(a) for a in given.ravel())
    return tuple(sorted(a % rank for a in axes)) or tuple(range(rank))


def _every_sum(
    builder: GraphBuilder, unit: QuantizationUnit, leaf: str, size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All possible sums of a window, and onnxruntime's result for a window with each.

    Each sum is distributed over its window as evenly as integers allow; every window is one channel.
    """
    sums = np.arange(-128 * size, 127 * size + 1, dtype=np.int64)
    parts = np.array_split(sums, -(-sums.size * size // _MOST_VALUES))
    return sums, np.concatenate([_average(builder, unit, leaf, _windows(p, size)) for p in parts]).astype(np.int64)


def _windows(sums: NDArray[np.int64], size: int) -> Int8s:
    """A window of `size` values for each sum."""
    low_part, rest = np.divmod(sums, size)
    # There may be millions of values, so they are compared and added as bytes where that is possible.
    windows: Int8s = (np.arange(size, dtype=np.int32) < rest.astype(np.int32)[:, None]).view(np.int8)
    windows += low_part.astype(np.int8)[:, None]
    return windows


def _average(builder: GraphBuilder, unit: QuantizationUnit, leaf: str, values: Int8s) -> Int8s:
    """Evaluate the unit on windows that each are one channel of an image with one row."""
    main, source = unit.operator, builder.model.producers[leaf]
    line = replace(main, op="GlobalAveragePool", inputs=(leaf,), attributes={})
    model = builder.model.with_nodes((source, line, *unit.clamps, unit.quantize))
    if main.qoperator is not None:
        model = builder.model.with_nodes((replace(main.qoperator, op="QLinearGlobalAveragePool", attributes={}),))
    part = vector_model(model, model.nodes, (source.inputs[0],), unit.output, 1)
    shape = (1, values.shape[0], 1, values.shape[1])
    part = replace(
        part, types={**part.types, source.inputs[0]: ValueType(builder.model.dtype(source.inputs[0]), shape)}
    )
    unsigned = builder.operand(leaf).tensor.unsigned
    return to_int8(
        evaluate(part, {source.inputs[0]: to_stored(values.reshape(shape), unsigned)}, builder.match)[0]
    ).ravel()
