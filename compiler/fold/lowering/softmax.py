"""Softmax over two channels: each result is a function of the difference of both, so no division is needed.

The difference d has 9 bits. A convolution with the weights 1 and -1 computes it for both channels, saturated to a
byte: once as d + 127, which distinguishes all d <= 0, and once as d - 128, which distinguishes all d >= 0. A table on
each gives one part of the result; an Add joins the parts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes
from intloom.compiler.fold.arithmetic.tabulation import evaluate_unit
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.unsupported import UnsupportedPattern
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import OnnxNode
from intloom.compiler.ir import Add, Conv, Tensor
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine, scale_from_float

_OVER_WHOLE_REST = 12
"""Up to this opset, Softmax normalizes over all axes from `axis` to the last."""
_REMEDY = "run it on the host, or remove it if only the order of its results matters"
_BELOW, _ABOVE = 127, -128
"""Offsets that map the differences -255 to 0, or 0 to 255, to int8."""
_UNSCALED = scale_from_float(1.0)


@lowers("Softmax", "LogSoftmax")
def lower_softmax(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a Softmax over two channels; a Softmax over more channels needs a division."""
    main = unit.operator
    shape = builder.model.shape(main.input(0)) or ()
    if len(shape) < 2 or shape[1] != 2 or _axis(builder, main, shape) != 1:
        raise UnsupportedPattern(f"{main.op} divides by what it computes, and the accelerator has no division", _REMEDY)
    x, result = builder.image(main.input(0)), builder.result(unit)
    by_difference = _function(builder, unit, x)
    below, above = by_difference[:256], by_difference[255:]
    # The last Add adds the middle of the range, so that the table above zero fits int8.
    middle = (int(above.max()) + int(above.min()) + 1) // 2
    parts = (
        _differences(builder, unit, x.tensor, result, "below", _BELOW, below),
        _differences(builder, unit, x.tensor, result, "above", _ABOVE, above - middle),
    )
    affine = Affine(1, 1, middle - int(above[0]), 0)
    joined = Add(name=unit_name(unit), inputs=parts, output=result.name, affine=affine)
    builder.finish(unit, joined, result, Target.ARRAY, "proved over 65,536 pairs")


def _axis(builder: GraphBuilder, main: OnnxNode, shape: tuple[int, ...]) -> int:
    """The axis that it normalizes over; -1 if there are several."""
    opset = builder.model.opset if main.qoperator is None else main.qoperator.integer("opset", builder.model.opset)
    whole = opset <= _OVER_WHOLE_REST
    axis = main.integer("axis", 1 if whole else -1) % len(shape)
    return -1 if whole and any(size > 1 for size in shape[axis + 1 :]) else axis


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
    found = np.zeros(511, dtype=np.int64)
    found[difference] = values
    if not np.array_equal(found[difference], values):
        raise UnsupportedPattern(
            "for some pairs of inputs its float result does not depend on their difference alone",
            "change its scale slightly",
        )
    return found


def _differences(
    builder: GraphBuilder,
    unit: QuantizationUnit,
    x: Tensor,
    result: Tensor,
    kind: str,
    offset: int,
    values: NDArray[np.int64],
) -> str:
    """Emit the convolution and table that map the differences plus `offset` to `values`; return the result's name."""
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
    builder.emit(node, Tensor(name, result.shape, result.scale, result.zero_point, result.unsigned))
    return name
