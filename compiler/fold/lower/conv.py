"""Conv with constant weights: int32 bias with the zero point folded in, int8 weight planes, a scale per channel."""

from __future__ import annotations

from ...ir import Conv
from ..bytewise import clamp_table
from ..lowering import Lowering, Refusal, Verdict, lowers, unit_name
from ..padding import window
from ..units import Unit
from ..weights import array_constants, read_bias, read_weights


@lowers("Conv")
def lower_conv(low: Lowering, unit: Unit) -> None:
    """Lower one convolution over images or, with one spatial dimension, over sequences."""
    main = unit.main
    assert main is not None
    x = low.image(main.input(0))
    result = low.result(unit)
    weights = read_weights(low.model, main.input(1))
    values = weights.values
    if values.ndim == 3:
        values = values[:, :, None, :]
    if values.ndim != 4:
        raise Refusal(f"a convolution over {values.ndim - 2} dimensions", "use convolutions over one or two dimensions")
    geometry = window(main, x.tensor, (values.shape[2], values.shape[3]))
    group = main.integer("group", 1)
    if group < 1 or values.shape[1] * group != x.tensor.channels:
        raise Refusal(
            f"{group} groups of {values.shape[1]} channels do not cover {x.tensor.channels}", "correct the model"
        )
    bias = read_bias(low.model, main.input(2), x.params, weights.scale)
    constants = array_constants(values, bias, x.params, weights.scale, result, name=main.name)
    table = clamp_table(low, unit)
    node = Conv(
        name=unit_name(unit),
        inputs=(x.tensor.name,),
        output=result.name,
        weights=constants.planes,
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
    )
    low.finish(unit, node, result, Verdict.ARRAY)
