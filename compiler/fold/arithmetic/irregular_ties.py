"""Makes a function of one number exact whose ties go up and down by no rule that the vector law has.

onnxruntime multiplies and averages in fp32, whose own rounding turns some results next to a tie into ties and pushes
others off, each in its own direction. Two laws then frame the function: one rounds all that is near a tie down, the
other up. Between any two neighboring results there is one tie at most, so a table on the lower one tells which of the
two is right:

    result = low + (high - low) * up(low)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.affine_fit import Points, SampledFunction, apply
from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.ir import Add, AvgPool, Mul, Table, Tensor
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine

_SHIFT = 26
_WINDOWS = (2.0**-16, 2.0**-13, 2.0**-11)
"""How near to a tie, in units of the result, a point must be to be decided by the table."""
_SUM = Affine(1, 1, 0, 0)
_DIFFERENCE = Affine(-1, 1, 0, 0)


@dataclass(frozen=True, eq=False)
class Bracket:
    """Two laws around a function, and for each result of the lower one whether the higher one is right."""

    low: Affine
    high: Affine
    up: NDArray[np.int8]


def fit_bracket(goal: SampledFunction, ratio: float) -> Bracket | None:
    """A frame that gives the wanted result at every point; `goal.x2` must be zero everywhere."""
    shift = _SHIFT
    while abs(ratio) * (1 << shift) >= 1 << 30 and shift > 8:
        shift -= 1
    factor = round(ratio * (1 << shift))
    least, most = goal.limits
    inner = (goal.result > least) & (goal.result < most)
    errors = (goal.result[inner] << shift) - goal.x1[inner] * factor
    if not errors.size:
        return None
    middle = (int(errors.max()) + int(errors.min())) // 2
    for window in _WINDOWS:
        reach = max(1, round(window * (1 << shift)))
        low, high = (Affine(factor, 0, middle + d, shift) for d in (-reach, reach))
        up = _directions(goal, low, high)
        if up is not None:
            return Bracket(low, high, up)
    return None


def _directions(goal: SampledFunction, low: Affine, high: Affine) -> NDArray[np.int8] | None:
    """For each lower result 1 where the higher one is wanted; None where one result would need both."""
    below, above = (_seen(apply(goal.x1, goal.x2, affine), goal) for affine in (low, high))
    floor = apply(goal.x1, goal.x2, low)
    wants_up, wants_down = (above == goal.result) & (below != above), (below == goal.result) & (below != above)
    if np.any((below != goal.result) & (above != goal.result)):
        return None
    up, down = np.zeros(256, np.int8), np.zeros(256, np.int8)
    up[floor[wants_up] & 0xFF] = 1
    down[floor[wants_down] & 0xFF] = 1
    return None if np.any(up & down) else up


def _seen(values: Points, goal: SampledFunction) -> Points:
    """Results through the clamps."""
    clipped = np.clip(values, INT8_MIN, INT8_MAX)
    return clipped if goal.clamps is None else goal.clamps[clipped & 0xFF].astype(np.int64)


def emit_bracket(
    builder: GraphBuilder, node: Mul | AvgPool, result: Tensor, frame: Bracket, clamps: NDArray[np.int8] | None
) -> None:
    """Emit `node` with both laws and what chooses between them."""
    names = {k: f"{result.name}/{k}" for k in ("low", "high", "step", "up", "taken")}
    both = np.zeros(256, np.int8)
    both[2] = 1
    origin = node.origin
    framed = {k: replace(node, affine=affine, table=None) for k, affine in (("low", frame.low), ("high", frame.high))}
    steps = (
        (replace(framed["low"], name=f"{node.name}/low"), "low"),
        (replace(framed["high"], name=f"{node.name}/high"), "high"),
        (Add(name=f"{node.name}/step", inputs=(names["low"], names["high"]), output="", affine=_DIFFERENCE), "step"),
        (Table(name=f"{node.name}/up", inputs=(names["low"],), output="", table=frame.up.tobytes()), "up"),
        (
            Add(
                name=f"{node.name}/taken",
                inputs=(names["step"], names["up"]),
                output="",
                affine=_SUM,
                table=both.tobytes(),
            ),
            "taken",
        ),
    )
    for step, kind in steps:
        builder.emit(replace(step, output=names[kind], origin=origin), Tensor(names[kind], result.shape, 1.0, 0, False))
    table = None if clamps is None else clamps.tobytes()
    last = Add(
        name=node.name,
        inputs=(names["low"], names["taken"]),
        output=result.name,
        affine=_SUM,
        table=table,
        origin=origin,
    )
    builder.emit(last, result)
