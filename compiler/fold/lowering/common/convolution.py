"""Convolution nodes, for all operators that multiply by constant weights."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes
from intloom.compiler.fold.arithmetic.tabulation import clamp_table
from intloom.compiler.fold.arithmetic.weights import MOST_ABOVE, Weights, array_constants, read_bias
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Conv, ConvTranspose
from intloom.compiler.ir.node import Pair


def finish_convolution(
    builder: GraphBuilder,
    unit: QuantizationUnit,
    x: Operand,
    weights: Weights,
    geometry: Window,
    *,
    group: int = 1,
    extra: Pair | None = None,
) -> None:
    """Add the unit's convolution, or a transposed one with `extra` rows and columns at the end.

    `weights.values` are [out, in / group, kernel rows, kernel columns], with one scale or one for each output.
    """
    main = unit.operator
    result = builder.result(unit)
    bias, values = read_bias(builder.model, main.input(2), x.params, weights.scale), weights.values
    table = clamp_table(builder, unit)
    flipped = values.size > 0 and int(values.max()) > MOST_ABOVE and int(values.min()) >= -MOST_ABOVE
    if flipped:
        # Two int8 planes hold weights from -256 to 254. Negated weights and bias give the complement of every result,
        # because rounding and clamping are symmetric; a table inverts it.
        values, bias = -values, None if bias is None else -bias
        table = _complement(table)
    # A complement of -2**31 would not fit, so negated sums must not wrap. ConvTranspose has no integer reference.
    wraps = extra is None and not flipped and main.input(2) not in builder.model.constants
    constants = array_constants(
        values, bias, x.params, weights.scale, result, name=main.name, zero_fed=extra is None, wraps=wraps
    )
    node = Conv(
        name=unit_name(unit),
        inputs=(x.tensor.name,),
        output=result.name,
        weights=constants.planes,
        bias=constants.bias,
        mantissa=constants.mantissa,
        shift=constants.shift,
        zp_in=x.tensor.zero_point,
        zp_out=~result.zero_point if flipped else result.zero_point,
        pads=geometry.pads,
        strides=geometry.strides,
        dilations=geometry.dilations,
        group=group,
        table=None if table is None else table.tobytes(),
    )
    if extra is not None:
        node = ConvTranspose(**{f.name: getattr(node, f.name) for f in fields(node)}, output_padding=extra)
    builder.finish(unit, node, result, Target.ARRAY)


def _complement(table: NDArray[np.int8] | None) -> NDArray[np.int8]:
    """Compose a table with the complement of its argument."""
    plain = all_bytes() if table is None else table
    return plain[~np.arange(256, dtype=np.uint8)]
