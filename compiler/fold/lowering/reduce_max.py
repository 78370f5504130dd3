"""ReduceMax: a pool over pixels of each channel, or sums on the vector unit over the channels of each pixel."""

from dataclasses import replace

from intloom.compiler.fold.arithmetic.tabulation import requant_table
from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.data_movement import finish_data_movement
from intloom.compiler.fold.lowering.common.tokens import TokenParts, bind_tokens, rows_along, token_results
from intloom.compiler.fold.lowering.max_pool import largest_of_blocks
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.reduction import reduced_axes
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Add, MaxPool
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.arith import Affine

_WORD = 16
"""Channels are halved at multiples of it, which are addresses on most hardware."""
_EXCESS, _LARGER = Affine(1, -1, -128, 0), Affine(1, 1, 128, 0)
"""`max(a - b, 0) - 128`, which fits in a byte, and what makes `max(a, b)` of it and of b."""


@lowers("ReduceMax")
def lower_reduce_max(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a maximum over height, width or both, or over the channels or the last axis."""
    main = unit.operator
    x = builder.operand_in_any_order(main.input(0))
    rank = len(x.shape)
    axes = tuple(a for a in reduced_axes(builder.model, main, rank) if x.shape[a] > 1)
    if axes and axes[0] > 1 and rank > 2 and builder.in_model_order(main.input(0)) and x.has_model_shape:
        # A sequence has its axis 2 along the width.
        kernel = (x.tensor.height if 2 in axes and rank == 4 else 1, x.tensor.width if rank - 1 in axes else 1)
        shape = (1, x.tensor.channels, x.tensor.height - kernel[0] + 1, x.tensor.width - kernel[1] + 1)
        result = builder.tensor(unit.output, shape, builder.params(unit))
        source, window = largest_of_blocks(builder, unit, x.tensor, Window(kernel, (1, 1), (1, 1), (0, 0, 0, 0)))
        pool = MaxPool(name=unit_name(unit), inputs=(source.name,), output="", kernel=window.kernel)
        finish_data_movement(builder, unit, pool, Target.VECTOR, result)
    elif len(axes) == 1:
        _over_rows(builder, unit, rows_along(builder, unit, main.input(0), axes[0]))
    else:
        raise Refusal.SELECTION(f"it reduces axes {axes} of {x.shape}", "reduce one axis, or height and width")


def _over_rows(builder: GraphBuilder, unit: QuantizationUnit, rows: TokenParts) -> None:
    """Emit the maximum over the channels of each pixel: of halves of the channels, until one is left."""
    results, table = token_results(builder, unit, rows, 1), requant_table(builder, unit)
    (x,), (result,) = rows.parts, results.parts
    while x.channels > 1:
        half = -(-x.channels // 2)
        if x.channels > _WORD:
            half = -(-half // _WORD) * _WORD
        # The halves may overlap.
        a, b = builder.channels(x.name, 0, half), builder.channels(x.name, x.channels - half, x.channels)
        name = f"{result.name}/largest{half}"
        excess = replace(builder.tensors[a], name=f"{name}/excess", zero_point=-128)
        over = Add(name=excess.name, inputs=(a, b), output=excess.name, affine=_EXCESS, origin=unit.origins)
        builder.emit(over, excess)
        largest = replace(builder.tensors[a], name=name)
        node = Add(name=name, inputs=(excess.name, b), output=name, affine=_LARGER, origin=unit.origins)
        if half == 1:
            largest, rescale = result, None if table is None else table.tobytes()
            node = replace(node, name=unit_name(unit), output=result.name, table=rescale)
        builder.emit(node, largest)
        x = largest
    bind_tokens(builder, unit, results)
    builder.assign(unit, Target.VECTOR, "sums that saturate")
