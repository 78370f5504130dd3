"""Fits the constants of the vector law to a function that is known at every point, and proves them at every point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from hw.spec.arith import INT8_MAX, INT8_MIN, Affine
from numpy.typing import NDArray

Points = NDArray[np.int64]

_SHIFTS = (24, 22, 26, 20, 28, 18, 16, 30)
_NEIGHBOURS = (0, 1, -1, 2, -2)
_FACTOR_BITS = 31
_CONSTANT_BITS = 47


def apply(x1: Points, x2: Points, law: Affine) -> Points:
    """The law of `hw.spec.arith.affine` for whole arrays."""
    total = x1 * law.m1 + x2 * law.m2 + law.c
    if law.shift:
        half = 1 << (law.shift - 1)
        rounded = (total + half) >> law.shift
        if law.even:
            rounded -= ((total & ((1 << law.shift) - 1)) == half) & (rounded & 1 == 1)
        total = rounded
    return np.clip(total, INT8_MIN, INT8_MAX)


def fit(
    x1: Points, x2: Points, wanted: Points, ratios: Sequence[float], clamps: NDArray[np.int8] | None = None
) -> Affine | None:
    """Constants with which the law gives `wanted` at every point, or None when none of those tried does.

    `ratios` are the real factors of x1 and x2; their integer factors are sought around them, and the constant comes from
    the interval that all points leave open. `clamps` is a monotone table that the law's result passes through.
    """
    limits = (INT8_MIN, INT8_MAX) if clamps is None else (int(clamps.min()), int(clamps.max()))
    for shift in _SHIFTS:
        base = [round(r * (1 << shift)) for r in ratios]
        if any(abs(b) >= 1 << (_FACTOR_BITS - 1) for b in base):
            continue
        for even, (m1, m2) in _candidates(base):
            law = _fit_constant(x1 * m1 + x2 * m2, wanted, Affine(m1, m2, 0, shift, even), limits)
            if law is not None and np.array_equal(_through(clamps, apply(x1, x2, law)), wanted):
                return law
    return None


def _through(clamps: NDArray[np.int8] | None, values: Points) -> Points:
    return values if clamps is None else clamps[values & 0xFF].astype(np.int64)


def _candidates(base: Sequence[int]) -> Iterator[tuple[bool, tuple[int, int]]]:
    steps = [_NEIGHBOURS if b else (0,) for b in base]
    pairs = sorted(product(*steps), key=lambda s: sum(map(abs, s)))
    yield False, (base[0], base[1])
    yield True, (base[0], base[1])
    for one, two in pairs[1:]:
        yield False, (base[0] + one, base[1] + two)


def _fit_constant(total: Points, wanted: Points, law: Affine, limits: tuple[int, int]) -> Affine | None:
    """The law with the middle one of the constants that all points allow. A clamped result bounds one side only."""
    half = 1 << (law.shift - 1)
    odd = (wanted & 1) if law.even else 0
    low = (wanted << law.shift) - half + odd - total
    high = (wanted << law.shift) + (half - odd if law.even else half - 1) - total
    least, most = low[wanted > limits[0]], high[wanted < limits[1]]
    floor = int(least.max()) if least.size else int(most.min()) if most.size else 0
    ceiling = int(most.min()) if most.size else floor
    if floor > ceiling:
        return None
    return _within(law, (floor + ceiling) // 2)


def _within(law: Affine, c: int) -> Affine | None:
    return Affine(law.m1, law.m2, c, law.shift, law.even) if abs(c) < 1 << _CONSTANT_BITS else None
