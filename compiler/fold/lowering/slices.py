"""Split and Slice: an address offset along channels, a selection of pixels along height and width."""

from dataclasses import replace

import numpy as np

from intloom.compiler.fold.arithmetic.tabulation import requant_table
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.common.data_movement import finish_data_movement
from intloom.compiler.fold.lowering.common.spatial import SpatialOps, Steps
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import OnnxNode
from intloom.compiler.ir import Slice
from intloom.compiler.refusals import Refusal


@lowers("Split")
def lower_split(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower an output of a Split along channels, height or width."""
    main = unit.operator
    x = builder.image(main.input(0))
    axis = main.integer("axis", 0) % len(x.shape)
    sizes = []
    for name in main.outputs:
        shape = builder.model.shape(name)
        if shape is None:
            raise Refusal.OPEN_SIZE(f"the shape of {name!r} is unknown", "give the sizes of the parts as a constant")
        sizes.append(shape[axis])
    number = main.outputs.index(unit.unclamped)
    _finish(builder, unit, x, {axis: Steps(sum(sizes[:number]), sum(sizes[: number + 1]))})


@lowers("Slice")
def lower_slice(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a Slice of adjacent channels, or of rows and columns with a step."""
    main = unit.operator
    x = builder.image(main.input(0))
    kept = {}
    for axis, first, last, step in slice_bounds(builder, main, len(x.shape)):
        if step < 1:
            raise Refusal.SELECTION("it steps backwards", "slice with positive steps")
        start, stop, _ = slice(first, last).indices(x.shape[axis])
        kept[axis] = Steps(start, stop, step)
    _finish(builder, unit, x, kept)


def slice_bounds(builder: GraphBuilder, node: OnnxNode, rank: int) -> list[tuple[int, int, int, int]]:
    """Read axis, start, end and step of each sliced axis; they must be constants."""
    arrays = []
    for index in (1, 2, 3, 4):
        value = builder.model.constant(node.input(index)) if node.input(index) else np.array([], dtype=np.int64)
        if value is None:
            raise Refusal.CONSTANT("its bounds are not constants", "slice by constants")
        arrays.append([int(v) for v in value.ravel()])
    starts, ends, axes, steps = arrays
    axes = [a % rank for a in axes] if axes else list(range(len(starts)))
    steps = steps or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise Refusal.INVALID("its starts, ends, axes and steps differ in number", "give all four for every axis")
    return list(zip(axes, starts, ends, steps, strict=True))


def _finish(builder: GraphBuilder, unit: QuantizationUnit, x: Operand, kept: dict[int, Steps]) -> None:
    """Slice channels first, then rows and columns."""
    whole = [Steps(0, size) for size in x.shape]
    wanted = [kept.get(axis, steps) for axis, steps in enumerate(whole)]
    if min(w.count for w in wanted) < 1:
        raise Refusal.INVALID("its result is empty", "remove the node")
    if wanted[0] != whole[0] or wanted[1].step != 1:
        raise Refusal.SELECTION("it slices the batch, or channels in steps", "slice adjacent channels")
    if wanted[2:] == whole[2:]:
        _finish_channels(builder, unit, x, wanted[1])
        return
    result, name, mover = builder.result(unit), unit_name(unit), SpatialOps(builder, unit.origins)
    tensor = x.tensor
    if wanted[1] != whole[1]:
        cut = Slice(
            name=f"{name}/channels",
            inputs=(tensor.name,),
            output=f"{result.name}/channels",
            start=wanted[1].start,
            stop=wanted[1].stop,
        )
        like = replace(tensor, shape=(1, wanted[1].count, tensor.height, tensor.width))
        tensor = mover.emit(cut, like, (tensor.height, tensor.width))
    rows, columns = (wanted[2], wanted[3]) if len(wanted) > 3 else (Steps(0, 1), wanted[2])
    picked = mover.pick(tensor, rows, columns, f"{result.name}/picked")
    table = requant_table(builder, unit)
    if table is not None:
        node = builder.table_node(f"{name}/rescale", picked.name, table, result.name)
        builder.finish(unit, node, result, Target.ARRAY, "a convolution that selects pixels")
        return
    builder.bind(unit.output, picked.name)
    builder.assign(unit, Target.ARRAY, "a convolution that selects pixels")


def _finish_channels(builder: GraphBuilder, unit: QuantizationUnit, x: Operand, kept: Steps) -> None:
    main = unit.operator
    name = unit_name(unit) if len(main.outputs) == 1 else f"{unit_name(unit)}:{main.outputs.index(unit.unclamped)}"
    node = Slice(name=name, inputs=(x.tensor.name,), output="", start=kept.start, stop=kept.stop)
    finish_data_movement(builder, unit, node, Target.PLACEMENT)
