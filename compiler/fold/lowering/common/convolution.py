"""Convolution nodes, for all operators that multiply by constant weights."""

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.tabulation import clamp_table
from intloom.compiler.fold.arithmetic.weights import Weights, array_bias, array_scales, array_weights, read_bias
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.ir import Conv, Tensor
from intloom.compiler.ir.ops.conv_transpose import transposed


def convolution(builder: GraphBuilder, unit: QuantizationUnit, x: Operand, weights: Weights, result: Tensor) -> Conv:
    """The convolution with the unit's weights, bias and clamps, from `x` to `result`."""
    bias = read_bias(builder.model, unit.operator.input(2), x.params, weights.scale)
    return biased_convolution(builder, unit, x, weights, bias, result)


def biased_convolution(
    builder: GraphBuilder,
    unit: QuantizationUnit,
    x: Operand,
    weights: Weights,
    bias: NDArray[np.int64] | None,
    result: Tensor,
) -> Conv:
    """The convolution with this bias, for operators whose third operand is something else."""
    main, window = unit.operator, weights.window
    table = clamp_table(builder, unit)
    # ConvTranspose has no integer reference.
    wraps = weights.extra is None and main.input(2) not in builder.model.constants
    total = array_bias(weights, bias, x.params.zero_int8, name=main.name, wraps=wraps)
    mantissa, shift = array_scales(weights, x.params, result, main.name)
    node = Conv(
        name=unit_name(unit),
        inputs=(x.tensor.name,),
        output=result.name,
        weights=array_weights(weights.values, main.name),
        bias=total,
        mantissa=mantissa,
        shift=shift,
        zp_in=x.tensor.zero_point,
        zp_out=result.zero_point,
        pads=window.pads,
        strides=window.strides,
        dilations=window.dilations,
        group=weights.group,
        table=None if table is None else table.tobytes(),
        origin=unit.origins,
    )
    return node if weights.extra is None else transposed(node, output_padding=weights.extra)
