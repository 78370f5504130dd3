"""Convolution nodes, for all operators that multiply by constant weights."""

from dataclasses import fields

from intloom.compiler.fold.arithmetic.tabulation import clamp_table
from intloom.compiler.fold.arithmetic.weights import Weights, array_constants, read_bias
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Conv, ConvTranspose, Tensor
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
    result = builder.result(unit)
    node = convolution(builder, unit, x, weights, geometry, result, group=group, extra=extra)
    builder.finish(unit, node, result, Target.ARRAY)


def convolution(
    builder: GraphBuilder,
    unit: QuantizationUnit,
    x: Operand,
    weights: Weights,
    geometry: Window,
    result: Tensor,
    *,
    group: int = 1,
    extra: Pair | None = None,
) -> Conv:
    """The convolution with the unit's weights, bias and clamps, from `x` to `result`."""
    main = unit.operator
    bias = read_bias(builder.model, main.input(2), x.params, weights.scale)
    table = clamp_table(builder, unit)
    # ConvTranspose has no integer reference.
    wraps = extra is None and main.input(2) not in builder.model.constants
    constants = array_constants(
        weights.values, bias, x.params, weights.scale, result, name=main.name, zero_fed=extra is None, wraps=wraps
    )
    node = Conv(
        name=unit_name(unit),
        inputs=(x.tensor.name,),
        output=result.name,
        weights=constants.weights,
        bias=constants.bias,
        mantissa=constants.mantissa,
        shift=constants.shift,
        zp_in=x.tensor.zero_point,
        zp_out=result.zero_point,
        pads=geometry.pads,
        strides=geometry.strides,
        dilations=geometry.dilations,
        group=group,
        table=None if table is None else table.tobytes(),
        origin=unit.origins,
    )
    if extra is not None:
        node = ConvTranspose(**{f.name: getattr(node, f.name) for f in fields(node)}, output_padding=extra)
    return node
