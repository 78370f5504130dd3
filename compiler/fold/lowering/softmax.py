"""Softmax: over two channels without division; else by an instruction of the vector unit.

Over two channels, each result is a function of their difference d, which has 9 bits. A convolution with the weights 1
and -1 computes it for both channels, saturated to a byte: once as d + 127, which distinguishes all d <= 0, and once as
d - 128, which distinguishes all d >= 0. A table on each gives one part of the result; an Add joins the parts.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.integer_softmax import (
    MOST_VALUES,
    OVER_WHOLE_REST,
    exponentials,
    full_result,
    is_pair,
    softmax_axis,
)
from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes
from intloom.compiler.fold.arithmetic.tabulation import evaluate_unit
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.common.over_axis import lower_over_axis
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Add, Conv, Softmax, Tensor
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine, scale_from_float
from intloom.hw.spec.softmax import pack_exponentials

_DEFINED = "integers within 1 of the float result"
_REMEDY = "run it on the host, or remove it if only the order of its results matters"
_BELOW, _ABOVE = 127, -128
"""Offsets that map the differences -255 to 0, or 0 to 255, to int8."""
_UNSCALED = scale_from_float(1.0)


@lowers("Softmax", "LogSoftmax")
def lower_softmax(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a Softmax over two channels, or over the channels or the last axis if the hardware has `vector_softmax`."""
    main = unit.operator
    shape = builder.model.shape(main.input(0)) or ()
    if not is_pair(builder.model, main):
        _require_softmax(builder, unit, shape)
        _lower_wide(builder, unit, shape)
        return
    x, result = builder.image(main.input(0)), builder.result(unit)
    by_difference = _function(builder, unit, x)
    below, above = by_difference[:256], by_difference[255:]
    # The last Add adds the middle of the range, so that the table above zero fits int8.
    middle = (int(above.max()) + int(above.min()) + 1) // 2
    parts = (
        _differences(builder, unit, x.tensor, _BELOW, below),
        _differences(builder, unit, x.tensor, _ABOVE, above - middle),
    )
    affine = Affine(1, 1, middle - int(above[0]), 0)
    joined = Add(name=unit_name(unit), inputs=parts, output=result.name, affine=affine)
    builder.finish(unit, joined, result, Target.ARRAY, "proved over 65,536 pairs")


def _require_softmax(builder: GraphBuilder, unit: QuantizationUnit, shape: tuple[int, ...]) -> None:
    """Raise UnsupportedPattern for what the instruction does not compute."""
    main = unit.operator
    if main.op != "Softmax" or not builder.options.softmax:
        raise Refusal.HARDWARE(f"{main.op} divides by what it computes, and the accelerator has no division", _REMEDY)
    axis = softmax_axis(builder.model, main)
    if not shape:
        raise Refusal.NORMALIZATION("its operand has no known axes", "export the model with static shapes")
    if builder.model.opset <= OVER_WHOLE_REST or axis < 0:
        raise Refusal.NORMALIZATION("Softmax of this opset normalizes over all axes from its own on", "use opset 13")
    if shape[axis] > MOST_VALUES:
        raise Refusal.NORMALIZATION(f"it normalizes over {shape[axis]} values", f"at most {MOST_VALUES} are supported")
    if full_result(float(builder.params(unit).scale)) is None:
        raise Refusal.NORMALIZATION("its result has another scale", "quantize the result with scale 1/256 or 1/255")
    if unit.clamps or len(builder.model.users(main.outputs[0])) != 1:
        raise Refusal.NOT_QUANTIZED("its float result is used otherwise", "quantize the result of the Softmax first")


def _lower_wide(builder: GraphBuilder, unit: QuantizationUnit, shape: tuple[int, ...]) -> None:
    """Lower to the instruction, once for each matrix."""
    value = unit.operator.input(0)
    axis = softmax_axis(builder.model, unit.operator)
    x, params = builder.operand_in_any_order(value), builder.params(unit)
    full = full_result(float(params.scale))
    assert full is not None  # checked before
    packed = pack_exponentials(exponentials(x.tensor.scale, shape[axis]))

    def make(source: str, result: str) -> Softmax:
        return Softmax(
            name=unit_name(unit),
            inputs=(source,),
            output=result,
            exponentials=packed,
            less=256 - full,
            zp_out=params.zero_int8,
        )

    lower_over_axis(builder, unit, value, axis, make)
    builder.assign(unit, Target.VECTOR, _DEFINED)


def _function(builder: GraphBuilder, unit: QuantizationUnit, x: Operand) -> NDArray[np.int64]:
    """The result for every difference of the two channels from -255 to 255."""
    one, two = (m.ravel() for m in np.meshgrid(all_bytes(), all_bytes(), indexing="ij"))
    pairs = np.stack([one, two])
    if len(x.shape) == 2:
        made = evaluate_unit(builder, unit, unit.operator.input(0), np.ascontiguousarray(pairs.T)).T
    else:
        form = {3: (1, 2, 1 << 16), 4: (1, 2, 256, 256)}[len(x.shape)]
        made = evaluate_unit(builder, unit, unit.operator.input(0), pairs.reshape(form)).reshape(2, -1)
    difference = np.concatenate([one.astype(np.int64) - two, two.astype(np.int64) - one]) + 255
    values = made.astype(np.int64).ravel()
    results = np.zeros(511, dtype=np.int64)
    results[difference] = values
    if not np.array_equal(results[difference], values):
        raise Refusal.NO_INTEGERS(
            "for some pairs of inputs its float result does not depend on their difference alone",
            "change its scale slightly",
        )
    return results


def _differences(
    builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, offset: int, values: NDArray[np.int64]
) -> str:
    """Emit the convolution and table that map the differences plus `offset` to `values`; return the result's name."""
    result, kind = builder.result(unit), "below" if offset == _BELOW else "above"
    name = f"{result.name}/{kind}"
    table = np.zeros(256, dtype=np.int8)
    table[np.arange(INT8_MIN, INT8_MAX + 1)] = values
    node = Conv(
        name=f"{unit_name(unit)}/{kind}",
        inputs=(x.name,),
        output=name,
        weights=np.array([[1, -1], [-1, 1]], dtype=np.int8).reshape(2, 2, 1, 1),
        bias=np.full(2, offset, dtype=np.int32),
        mantissa=np.full(2, _UNSCALED.mantissa, dtype=np.uint32),
        shift=np.full(2, _UNSCALED.shift, dtype=np.uint8),
        zp_in=x.zero_point,
        zp_out=0,
        table=table.tobytes(),
        origin=unit.origins,
    )
    builder.emit(node, replace(result, name=name))
    return name
