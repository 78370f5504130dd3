"""Transpose: another view of the same bytes, or a permutation of channels."""

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.tabulation import requant_table
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.lowering.reshape import lower_view
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.ir.ops.conv import moving_conv
from intloom.compiler.refusals import Refusal


@lowers("Transpose")
def lower_transpose(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a transposition that keeps the order of bytes, or that permutes the channels (a channel shuffle)."""
    main = unit.operator
    x = builder.operand(main.input(0))
    order = main.integers("perm", tuple(reversed(range(len(x.shape)))))
    moved = [a for a in order if x.shape[a] > 1]
    if moved == sorted(moved):
        lower_view(builder, unit)
        return
    sources = _channel_sources(x, order)
    if sources is None:
        raise Refusal.ORDER(
            "it changes the order of values", "transpose on the host, after the last quantized operator"
        )
    table = requant_table(builder, unit)
    tensor = builder.tensor(unit.output, x.tensor.shape, builder.params(unit))
    weights = np.zeros((len(sources), len(sources), 1, 1), np.int8)
    weights[np.arange(len(sources)), sources] = 1
    data = None if table is None else table.tobytes()
    node = replace(moving_conv(unit_name(unit), x.tensor, weights, table=data), output=tensor.name)
    builder.finish(unit, node, tensor, Target.ARRAY, "a 1x1 convolution that permutes channels")


def _channel_sources(x: Operand, order: tuple[int, ...]) -> NDArray[np.int64] | None:
    """For each channel of the result the operand's channel; None if values leave their pixel."""
    for end in range(2, len(x.shape) + 1):
        if prod(x.shape[1:end]) == x.tensor.channels and tuple(order[end:]) == tuple(range(end, len(order))):
            inner = [axis - 1 for axis in order[1:end]]
            if order[0] == 0 and sorted(inner) == list(range(end - 1)):
                return np.arange(x.tensor.channels).reshape(x.shape[1:end]).transpose(inner).ravel()
    return None
