"""Exact implementation of functions of one number with irregular rounding ties.

onnxruntime multiplies and averages in fp32, which rounds results next to a tie up or down irregularly. Two affine
operations bracket such a function: one rounds all values near a tie down, the other one up. There is at most one tie
between two adjacent results, so a table on the lower result selects the correct one:

    result = low + (high - low) * up(low)
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.affine_fit import SUM, Points, SampledFunction, apply, finest_shift
from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.ir import Add, AvgPool, Mul, Node, Tensor
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine

_SHIFT = 26
_WINDOWS = (2.0**-16, 2.0**-13, 2.0**-11)
"""Distances from a tie, in units of the result, within which the table decides."""
_DIFFERENCE = Affine(-1, 1, 0, 0)


@dataclass(frozen=True, eq=False)
class Bracket:
    """Two affine operations around a function, and for each lower result whether the higher one is correct."""

    low: Affine
    high: Affine
    up: NDArray[np.int8]


def fit_bracket(goal: SampledFunction, ratio: float) -> Bracket | None:
    """A bracket that returns the required result at every point; `goal.x2` must be zero everywhere."""
    shift = min(_SHIFT, finest_shift((ratio, 0.0)))
    factor = round(ratio * (1 << shift))
    least, most = goal.limits
    errors = (goal.result << shift) - goal.x1 * factor
    # A clamped result bounds the constant from one side only.
    above, below = errors[goal.result > least], errors[goal.result < most]
    if not (above.size and below.size):
        return None
    middle = (int(above.max()) + int(below.min())) // 2
    # The smallest window first: a wide one moves regular results into the bracket, and then one lower result may
    # require both directions.
    for window in _WINDOWS:
        reach = max(1, round(window * (1 << shift)))
        low, high = (Affine(factor, 0, middle + d, shift) for d in (-reach, reach))
        up = _directions(goal, low, high)
        if up is not None:
            return Bracket(low, high, up)
    return None


def _directions(goal: SampledFunction, low: Affine, high: Affine) -> NDArray[np.int8] | None:
    """For each lower result, 1 where the higher one is required; None if one lower result requires both."""
    below, above = (_clamped(apply(goal.x1, goal.x2, affine), goal) for affine in (low, high))
    # The table is indexed by the unclamped lower result, as the emitted Table node reads it before the clamps.
    floor = apply(goal.x1, goal.x2, low)
    wants_up, wants_down = (above == goal.result) & (below != above), (below == goal.result) & (below != above)
    # The bracket must contain the function: one of its two sides is the required result at every point.
    if np.any((below != goal.result) & (above != goal.result)):
        return None
    up, down = np.zeros(256, np.int8), np.zeros(256, np.int8)
    up[floor[wants_up] & 0xFF] = 1
    down[floor[wants_down] & 0xFF] = 1
    return None if np.any(up & down) else up


def _clamped(values: Points, goal: SampledFunction) -> Points:
    """Saturate results and apply the clamps."""
    clipped = np.clip(values, INT8_MIN, INT8_MAX)
    return clipped if goal.clamps is None else goal.clamps[clipped & 0xFF].astype(np.int64)


def emit_bracket(
    builder: GraphBuilder, node: Mul | AvgPool, result: Tensor, bracket: Bracket, clamps: NDArray[np.int8] | None
) -> None:
    """Emit `node` with both operations, and the nodes that select between them."""

    def emitted(kind: str, made: Node) -> str:
        output = f"{result.name}/{kind}"
        made = replace(made, name=f"{node.name}/{kind}", output=output, origin=node.origin)
        builder.emit(made, Tensor(output, result.shape, 1.0, 0, False))
        return output

    low, high = (
        emitted(kind, replace(node, affine=affine, table=None))
        for kind, affine in (("low", bracket.low), ("high", bracket.high))
    )
    step = emitted("step", Add(name="", inputs=(low, high), output="", affine=_DIFFERENCE))
    up = emitted("up", builder.table_node("", low, bracket.up, ""))
    both = np.zeros(256, np.int8)
    # `step` and `up` are 0 or 1, so their sum is 2 exactly where both hold: an And without a further instruction.
    both[2] = 1
    taken = emitted("taken", Add(name="", inputs=(step, up), output="", affine=SUM, table=both.tobytes()))
    last = Add(name=node.name, inputs=(low, taken), output=result.name, affine=SUM, origin=node.origin)
    builder.emit(last if clamps is None else replace(last, table=clamps.tobytes()), result)
