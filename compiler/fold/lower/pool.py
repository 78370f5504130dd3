"""Averages: GlobalAveragePool, AveragePool and ReduceMean over height and width, as a scaled sum of the window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hw.spec.arith import Affine

from ...importer import Model, OnnxNode, ValueType
from ...ir import AvgPool, Tensor
from ..bytewise import Int8s, clamp_table, vector_part
from ..either import emit_frame, fit_frame
from ..law import Wanted, fit_with_table
from ..lowering import Lowering, Operand, Refusal, Verdict, lowers, unit_name
from ..oracle import evaluate, internal, stored
from ..padding import Window, window
from ..units import Unit

_LARGEST_SUM = 1 << 17
_TIE = 2.0**-18
_ONE_IN = 10_000
_PLAIN = Affine(1, 0, 0, 0)


@lowers("GlobalAveragePool", "AveragePool", "ReduceMean")
def lower_average(low: Lowering, unit: Unit) -> None:
    """Lower an average over windows, none of which is only partly inside the image."""
    main = unit.main
    assert main is not None
    leaf = main.input(0)
    x, result = low.image(leaf), _result(low, unit)
    geometry = _geometry(low.model, main, x)
    size = geometry.kernel[0] * geometry.kernel[1]
    if 256 * size >= _LARGEST_SUM:
        raise Refusal(f"its window of {geometry.kernel} sums up more than 18 bits hold", "average in two steps")
    sums, truth = _every_sum(low, unit, leaf, size)
    clamps, ratios = clamp_table(low, unit), (x.tensor.scale / (size * result.scale), 0.0)
    goal = Wanted(sums, np.zeros_like(sums), truth, clamps)
    node = AvgPool(
        name=unit_name(unit),
        inputs=(x.tensor.name,),
        output=result.name,
        kernel=geometry.kernel,
        law=_PLAIN,
        zp_in=x.tensor.zero_point,
        strides=geometry.strides,
        pads=geometry.pads,
    )
    if main.op != "GlobalAveragePool" and main.kernel is None and _many_ties(goal, x.tensor, result, size):
        low.notes[main.name] = (
            f"{main.name!r}: onnxruntime averages in float, and with these scales many averages are ties, which it "
            "breaks by the order of the values: single results may differ by one: change its scale a little"
        )
    _finish(low, unit, node, result, goal, ratios)


def _many_ties(goal: Wanted, x: Tensor, result: Tensor, size: int) -> bool:
    """Whether more than one sum in ten thousand gives an average on a tie, where float sums depend on their order."""
    value = (goal.x1 - size * x.zero_point) * (x.scale / (size * result.scale)) + result.zero_point
    least, most = goal.limits
    tied = (np.abs(value - np.floor(value) - 0.5) < _TIE) & (value > least) & (value < most)
    return bool(np.count_nonzero(tied) * _ONE_IN > len(value))


def _finish(
    low: Lowering, unit: Unit, node: AvgPool, result: Tensor, goal: Wanted, ratios: tuple[float, float]
) -> None:
    """Add `node` with the law that gives `goal` at every sum."""
    found = fit_with_table(goal.x1, goal.x2, goal.result, ratios, goal.clamps)
    if found is not None:
        law, table = found
        made = replace(node, law=law, table=None if table is None else table.tobytes())
        low.finish(unit, made, result, Verdict.VECTOR, f"proved over all {len(goal.x1)} sums")
        return
    frame = fit_frame(goal, ratios[0])
    if frame is None:
        raise Refusal("no integer constants reproduce it at every sum", "change its scale a little")
    emit_frame(low, unit, node, result, frame, goal.clamps)


def _result(low: Lowering, unit: Unit) -> Tensor:
    """ReduceMean without kept dimensions gives a vector, which is an image of one pixel."""
    return low.result(unit)


def _geometry(model: Model, node: OnnxNode, x: Operand) -> Window:
    size = (x.tensor.height, x.tensor.width)
    if node.op == "AveragePool":
        found = window(node, x.tensor)
        if found.dilations != (1, 1):
            raise Refusal("its window is dilated", "use dilations of 1")
        if any(found.pads) and not node.integer("count_include_pad", 0):
            raise Refusal("its windows at the border average fewer pixels", "pad first, or set count_include_pad")
        return found
    if node.op == "ReduceMean" and _axes(model, node, len(x.shape)) != tuple(range(2, len(x.shape))):
        raise Refusal("it averages other axes than height and width", "average over height and width")
    return Window(size, (1, 1), (1, 1), (0, 0, 0, 0))


def _axes(model: Model, node: OnnxNode, rank: int) -> tuple[int, ...]:
    axes = node.integers("axes", ())
    given = model.constant(node.input(1)) if node.input(1) else None
    if given is not None:
        axes = tuple(int(a) for a in given.ravel())
    return tuple(sorted(a % rank for a in axes)) or tuple(range(rank))


def _every_sum(low: Lowering, unit: Unit, leaf: str, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All sums that a window can have, and what the runtime makes of a window with each.

    The sums are put into windows as evenly as integers allow, one window to a channel.
    """
    sums = np.arange(-128 * size, 127 * size + 1, dtype=np.int64)
    low_part, rest = np.divmod(sums, size)
    values = (low_part[:, None] + (np.arange(size) < rest[:, None])).astype(np.int8)
    return sums, _average(low, unit, leaf, values).astype(np.int64)


def _average(low: Lowering, unit: Unit, leaf: str, values: Int8s) -> Int8s:
    """The unit on windows that each fill a channel of an image of one row."""
    main, source = unit.main, low.model.producers[leaf]
    assert main is not None
    line = replace(main, op="GlobalAveragePool", inputs=(leaf,), attributes={})
    model = low.model.with_nodes((source, line, *unit.chain, unit.quantize))
    if main.kernel is not None:
        model = low.model.with_nodes((replace(main.kernel, op="QLinearGlobalAveragePool", attributes={}),))
    part = vector_part(model, model.nodes, (source.inputs[0],), unit.output, 1)
    shape = (1, values.shape[0], 1, values.shape[1])
    part = replace(part, types={**part.types, source.inputs[0]: ValueType(low.model.dtype(source.inputs[0]), shape)})
    unsigned = low.operand(leaf).tensor.unsigned
    return internal(evaluate(part, {source.inputs[0]: stored(values.reshape(shape), unsigned)}, low.match)[0]).ravel()
