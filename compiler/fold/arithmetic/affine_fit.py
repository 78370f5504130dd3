"""Fit of an affine operation to a function that is known at every point, with a proof at every point.

The operation is linear before it rounds. Every point therefore bounds its three constants from two sides, and the
width of the interval that remains for `c` is a concave function of the two factors. Four searches run, cheap ones
first:

0. ratios close to simple binary fractions are taken as these; many points are then ties, which need exact factors;
1. the rounded ratios and their neighbors;
2. a grid search with shrinking radius for the widest interval; it uses only points next to a tie, since only these can
   bound the interval;
3. where the widest interval is empty or a single value, fp32 rounded some ties to even. The factors that make these
   points exact ties are solutions of a linear Diophantine equation.

A candidate is accepted only if the operation returns the required result at every point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import floor, gcd

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir import arithmetic
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.arith import CONSTANT_BITS, FACTOR_BITS, INT8_MAX, INT8_MIN, Affine

Points = NDArray[np.int64]
Reals = NDArray[np.float64]

IDENTITY = Affine(1, 0, 0, 0)
SUM = Affine(1, 1, 0, 0)

_FIRST_SHIFTS = (24, 22, 26, 20, 28, 18, 16)
"""Shifts in the order in which they are tried: around 24 bits, the precision of fp32 scales."""
_NEIGHBORS = (0, 1, -1)
_MAX_RATIO = 2.0**20
_FINEST_SHIFT = 36
_SIMPLE_SHIFTS = range(9)
_SIMPLE = 2.0**-21
"""Largest relative distance of a ratio of fp32 scales from the binary fraction that it is taken as."""
_NEAR_TIE = 2e-3
"""Points farther than this from a tie do not bound the interval: the search moves no point by as much."""
_FLOAT_ERROR = 1e-6
"""Far above the rounding errors of real results in float64."""
_ZOOM_RADIUS = 2.0**-19
_ZOOM_STEPS = 14
_GRID = np.linspace(-1.0, 1.0, 17)


def clamp_limits(clamps: NDArray[np.int8] | None) -> tuple[int, int]:
    """The smallest and the largest byte of a table of clamps, or of all bytes."""
    return (INT8_MIN, INT8_MAX) if clamps is None else (int(clamps.min()), int(clamps.max()))


@dataclass(frozen=True, eq=False)
class SampledFunction:
    """A function of two small integers, sampled at every point, and the monotone table that follows it."""

    x1: Points
    x2: Points
    result: Points
    clamps: NDArray[np.int8] | None = None

    @property
    def limits(self) -> tuple[int, int]:
        """Results at which the function is clamped: such a point bounds the operation from one side only."""
        return clamp_limits(self.clamps)

    def missing(self, affine: Affine) -> Points:
        """Difference between the required result and that of the operation, at every point."""
        computed = apply(self.x1, self.x2, affine)
        if self.clamps is not None:
            computed = self.clamps[computed & 0xFF].astype(np.int64)
        return self.result - computed


def apply(x1: Points, x2: Points, operation: Affine) -> Points:
    """The results of an affine operation."""
    return arithmetic.affine(x1, x2, operation).astype(np.int64)


def fit_affine(goal: SampledFunction, ratios: tuple[float, float]) -> Affine | None:
    """Constants with which the operation returns the function's result at every point, or None if no candidate does.

    `ratios` are the real factors of x1 and x2.
    """
    for affine in _proposals(goal, ratios):
        if affine is not None and not goal.missing(affine).any():
            return affine
    return None


def closest_affine(goal: SampledFunction, ratios: tuple[float, float]) -> tuple[Affine, Points]:
    """Constants with few wrong points, for functions that no constants fit, and the difference at each point."""
    candidates = [affine for affine in _proposals(goal, ratios, force=True) if affine is not None]
    affine = min(candidates, key=lambda k: int(np.count_nonzero(goal.missing(k))))
    return affine, goal.missing(affine)


@dataclass(frozen=True, eq=False)
class _Side:
    """The points that bound the constant from one side, and how far the ratios alone are from their results."""

    x1: Points
    x2: Points
    result: Points
    error: Reals
    """Negated for the upper bound, so that large values are tight on both sides."""

    def tight(self, margin: float) -> _Side:
        """The points whose error is within `margin` of the largest one."""
        if not self.error.size:
            return self
        keep = np.flatnonzero(self.error >= self.error.max() - margin)
        return _Side(self.x1[keep], self.x2[keep], self.result[keep], self.error[keep])


class _Constants:
    """Constants for candidates of the two factors, from the few points that may bound them."""

    def __init__(self, goal: SampledFunction, ratios: tuple[float, float], *, force: bool) -> None:
        self.goal, self.ratios, self._force = goal, ratios, force
        self._spans = [int(np.abs(x).max(initial=0)) for x in (goal.x1, goal.x2)]
        real: Reals = goal.x1 * ratios[0] + goal.x2 * ratios[1]
        error: Reals = goal.result.astype(np.float64) - real
        # A clamped result bounds the constant from one side only: any value beyond the limit gives the same byte.
        lower, upper = goal.result > goal.limits[0], goal.result < goal.limits[1]
        self._lower = _Side(goal.x1[lower], goal.x2[lower], goal.result[lower], error[lower])
        self._upper = _Side(goal.x1[upper], goal.x2[upper], goal.result[upper], -error[upper])

    def middle(self, m1: int, m2: int, shift: int, *, even: bool) -> Affine | None:
        """The operation with the middle of the constants that all points allow; with `force`, also if they allow none.

        None also if a coefficient does not fit its field.

        Factors move a point by at most `moved` from where the ratios put it, so no point that is more than twice as
        far from the tightest one becomes the tightest.
        """
        unit = 2.0**-shift
        moved = sum(
            span * abs(m * unit - ratio) for span, m, ratio in zip(self._spans, (m1, m2), self.ratios, strict=True)
        )
        margin = 2 * (moved + unit) + _FLOAT_ERROR
        lower, upper = self._lower.tight(margin), self._upper.tight(margin)
        half = 1 << (shift - 1)
        # With ties to even, an even result owns both of its ties and an odd result owns neither.
        least = (lower.result << shift) - half - lower.x1 * m1 - lower.x2 * m2 + (lower.result & even)
        most = (upper.result << shift) + half - upper.x1 * m1 - upper.x2 * m2 - ((upper.result & 1) if even else 1)
        floor_c = int(least.max()) if least.size else int(most.min()) if most.size else 0
        ceiling_c = int(most.min()) if most.size else floor_c
        # The middle is the farthest from both bounds.
        c = (floor_c + ceiling_c) // 2
        outside = max(abs(m1), abs(m2)) >= 1 << FACTOR_BITS - 1 or abs(c) >= 1 << CONSTANT_BITS - 1
        if outside or (floor_c > ceiling_c and not self._force):
            return None
        return Affine(m1, m2, c, shift, even)


def _proposals(goal: SampledFunction, ratios: tuple[float, float], *, force: bool = False) -> Iterator[Affine | None]:
    # Cheap candidates first: `_zoomed` computes the sums of a whole grid of factors in each step.
    constants = _Constants(goal, ratios, force=force)
    yield from _simple(constants)
    finest = finest_shift(ratios)
    shifts = list(dict.fromkeys(min(shift, finest) for shift in _FIRST_SHIFTS))
    for shift in shifts:
        base = [round(r * (1 << shift)) for r in ratios]
        # A ratio that rounds to zero, as that of an unused operand, has no neighbors.
        for steps in sorted(product(*(_NEIGHBORS if b else (0,) for b in base)), key=lambda s: sum(map(abs, s))):
            yield constants.middle(base[0] + steps[0], base[1] + steps[1], shift, even=False)
        yield constants.middle(base[0], base[1], shift, even=True)
        # The grid search does not depend on the shift, so it runs once, before the less likely shifts.
        if shift == shifts[0]:
            yield from _zoomed(constants)


def _simple(constants: _Constants) -> Iterator[Affine | None]:
    """Candidates for ratios that are close to binary fractions."""
    for shift in _SIMPLE_SHIFTS:
        exact = [r * (1 << shift) for r in constants.ratios]
        if all(abs(e - round(e)) <= _SIMPLE * abs(e) for e in exact):
            # One more bit represents one half, which a constant between ties may need.
            for even in (True, False):
                m1, m2 = (round(2 * e) for e in exact)
                yield constants.middle(m1, m2, shift + 1, even=even)
            return


def _zoomed(constants: _Constants) -> Iterator[Affine | None]:
    """Candidates of the second and third search."""
    best = constants.ratios
    near = _near_ties(constants.goal, best)
    if not near.x1.size:
        return
    width, radius = -np.inf, _ZOOM_RADIUS
    for _ in range(_ZOOM_STEPS):
        interval, factors_found = _widest_interval(near, best, radius)
        if interval > width:
            width, best = interval, factors_found
        # The grid step is radius / 8, so the next grid covers three steps on each side of the best point.
        radius /= 2.5
    shift = finest_shift(best)
    for even in (False, True):
        yield constants.middle(round(best[0] * (1 << shift)), round(best[1] * (1 << shift)), shift, even=even)
    factors = _tied_factors(near, best, shift)
    if factors is not None:
        yield constants.middle(*factors, shift, even=True)


def finest_shift(factors: tuple[float, float]) -> int:
    """The largest shift with which both factors fit their fields."""
    largest = max(abs(f) for f in factors)
    shift = _FINEST_SHIFT
    while round(largest * (1 << shift)) >= 1 << FACTOR_BITS - 1:
        shift -= 1
    return shift


def _near_ties(goal: SampledFunction, ratios: tuple[float, float]) -> SampledFunction:
    """The points whose real result is next to a tie."""
    value = goal.x1 * ratios[0] + goal.x2 * ratios[1]
    low, high = goal.limits
    inside = (goal.result > low) & (goal.result < high)
    if inside.any():
        # Rounding errors are in [-1/2, 1/2], so the middle of the observed errors is the real offset.
        errors = (goal.result - value)[inside]
        value += float(errors.max() + errors.min()) / 2
    tie = np.abs(value - np.floor(value) - 0.5) < _NEAR_TIE
    # Ties beyond the clamp limits decide no result.
    keep = tie & (value > low - 1) & (value < high + 1)
    return SampledFunction(goal.x1[keep], goal.x2[keep], goal.result[keep], goal.clamps)


def _bounds(near: SampledFunction, total: Reals) -> tuple[Reals, Reals]:
    """Minimum and maximum real constant that the points allow, along the last axis."""
    low, high = near.limits
    # As in `_Constants.middle`, but with real constants: here the shift is not chosen yet.
    least = np.where(near.result > low, near.result - 0.5 - total, -np.inf).max(axis=-1)
    most = np.where(near.result < high, near.result + 0.5 - total, np.inf).min(axis=-1)
    return least, most


def _widest_interval(
    near: SampledFunction, middle: tuple[float, float], radius: float
) -> tuple[float, tuple[float, float]]:
    """The widest interval over a grid of factors around `middle`, and its factors."""
    # A zero ratio stays zero, as above; searching it would only multiply the grid.
    one = middle[0] + radius * _GRID if middle[0] else np.zeros(1)
    two = middle[1] + radius * _GRID if middle[1] else np.zeros(1)
    total = near.x1 * one[:, None, None] + near.x2 * two[None, :, None]
    least, most = _bounds(near, total)
    width = most - least
    i, j = np.unravel_index(int(width.argmax()), width.shape)
    return float(width[i, j]), (float(one[i]), float(two[j]))


def _tied_factors(near: SampledFunction, best: tuple[float, float], shift: int) -> tuple[int, int] | None:
    """Integer factors next to `best` that make the tightest points exact ties, if these points lie on one line."""
    total = near.x1 * best[0] + near.x2 * best[1]
    least, most = _bounds(near, total)
    value = total + (least + most) / 2
    # The widest interval is a single value here, so its bounds are met exactly up to float64 rounding.
    tied = np.flatnonzero(np.abs(value - np.floor(value) - 0.5) < 1e-8)
    if tied.size < 2:
        return None
    # Two of the tied points determine the equation; `fit_affine` proves the result at all points.
    first, last = tied[0], tied[-1]
    steps = (int(near.x1[last] - near.x1[first]), int(near.x2[last] - near.x2[first]))
    rise = round(float(total[last] - total[first]))
    return _on_line(steps, rise << shift, (best[0] * 2.0**shift, best[1] * 2.0**shift))


def _on_line(steps: tuple[int, int], target: int, near: tuple[float, float]) -> tuple[int, int] | None:
    """The integer solution of `steps[0]*m1 + steps[1]*m2 = target` nearest to `near`, if there is one."""
    common = gcd(*steps)
    # A linear Diophantine equation has solutions only if the gcd divides its right side.
    if common == 0 or target % common:
        return None
    p, q, goal = steps[0] // common, steps[1] // common, target // common
    # The line is parallel to the first axis: m1 follows, and m2 is free.
    if q == 0:
        return goal // p, round(near[1])
    # m1 is fixed modulo |q|; take the residue next to the wanted factor.
    residue = goal * pow(p, -1, abs(q)) % abs(q)
    m1 = residue + abs(q) * floor((near[0] - residue) / abs(q) + 0.5)
    return m1, (goal - p * m1) // q


def fit_affine_with_table(
    goal: SampledFunction, ratios: tuple[float, float]
) -> tuple[Affine, NDArray[np.int8] | None] | None:
    """Fit like `fit_affine`, and return the table that must follow the operation.

    Where onnxruntime rounds ties to even and then adds an odd zero point, ties go to odd results. The operation then
    computes the complement of the result, whose ties go to even, and the table inverts it.

    Raises
    ------
    UnsupportedPattern
        A ratio is so large that the arithmetic of the search could overflow.
    """
    if max(map(abs, ratios)) >= _MAX_RATIO:
        raise Refusal.NO_INTEGERS(f"its operand's scale is {max(ratios):.3g} times its result's", "correct the scales")
    affine = fit_affine(goal, ratios)
    if affine is not None:
        return affine, goal.clamps
    # `~x` is -1 - x: it reverses the order of int8 values, so the clamp table is conjugated with it.
    flipped = None if goal.clamps is None else ~goal.clamps[~np.arange(256, dtype=np.uint8)]
    affine = fit_affine(replace(goal, result=~goal.result, clamps=flipped), (-ratios[0], -ratios[1]))
    if affine is None:
        return None
    back = ~np.arange(256, dtype=np.uint8).view(np.int8) if flipped is None else ~flipped
    return affine, back
