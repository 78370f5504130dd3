"""ConvTranspose with constant weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...importer import OnnxNode
from ...ir import ConvTranspose
from ...ir.ops import Pads, Pair
from ..bytewise import clamp_table
from ..lowering import Lowering, Refusal, Verdict, lowers, unit_name
from ..units import Unit
from ..weights import array_constants, read_bias, read_weights


@lowers("ConvTranspose")
def lower_conv_transpose(low: Lowering, unit: Unit) -> None:
    """Lower a transposed convolution over images."""
    main = unit.main
    assert main is not None
    x, result = low.image(main.input(0)), low.result(unit)
    weights = read_weights(low.model, main.input(1), channel_axis=1)
    group = main.integer("group", 1)
    if weights.values.ndim != 4:
        raise Refusal(
            f"a convolution over {weights.values.ndim - 2} dimensions", "use convolutions over two dimensions"
        )
    if group < 1 or weights.values.shape[0] != x.tensor.channels or x.tensor.channels % group:
        raise Refusal(f"{group} groups do not cover {x.tensor.channels} channels", "correct the model")
    if group > 1 and weights.scale.ndim:
        raise Refusal("it has groups and a scale per channel", "quantise its weights per tensor")
    values = _output_first(weights.values, group)
    bias = read_bias(low.model, main.input(2), x.params, weights.scale)
    place = _geometry(main)
    constants = array_constants(values, bias, x.params, weights.scale, result, name=main.name, zero_fed=False)
    table = clamp_table(low, unit)
    node = ConvTranspose(
        name=unit_name(unit),
        inputs=(x.tensor.name,),
        output=result.name,
        weights=constants.planes,
        bias=constants.bias,
        mantissa=constants.mantissa,
        shift=constants.shift,
        zp_in=x.tensor.zero_point,
        zp_out=result.zero_point,
        pads=place.pads,
        strides=place.strides,
        dilations=place.dilations,
        group=group,
        output_padding=place.extra,
        table=None if table is None else table.tobytes(),
    )
    low.finish(unit, node, result, Verdict.ARRAY)


@dataclass(frozen=True)
class _Place:
    pads: Pads
    strides: Pair
    dilations: Pair
    extra: Pair


def _geometry(node: OnnxNode) -> _Place:
    """Strides, dilations and the padding that is cut off the result."""
    strides, dilations = _pair(node, "strides", 1), _pair(node, "dilations", 1)
    extra, pads = _pair(node, "output_padding", 0), node.integers("pads", (0, 0, 0, 0))
    if node.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or node.integers("output_shape", ()):
        raise Refusal("it leaves its padding to be computed", "give explicit pads")
    if len(pads) != 4 or min(pads) < 0 or min(*strides, *dilations) < 1 or min(extra) < 0:
        raise Refusal(f"pads {pads}, strides {strides}, dilations {dilations}", "use positive ones over two dimensions")
    return _Place((pads[0], pads[1], pads[2], pads[3]), strides, dilations, extra)


def _pair(node: OnnxNode, name: str, default: int) -> Pair:
    values = node.integers(name, (default, default))
    if len(values) != 2:
        raise Refusal(f"{name} has {len(values)} values", "use convolutions over two dimensions")
    return values[0], values[1]


def _output_first(weights: NDArray[np.int32], group: int) -> NDArray[np.int32]:
    """From ONNX's [in, out/group, …] to [out, in/group, …]."""
    inputs, each, rows, columns = weights.shape
    grouped = weights.reshape(group, inputs // group, each, rows, columns).swapaxes(1, 2)
    return np.ascontiguousarray(grouped).reshape(group * each, inputs // group, rows, columns)
