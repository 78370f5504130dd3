"""A byte plus a function of another byte, as two sums of bytes: `n[x] + affine(k[x], r)`, with tables n and k.

The result `round(ratio * r + f(x))` depends on f(x) by its integer part and by where its fraction lies between the 256
ties that the bytes r have. The tie of byte r is at the fraction of `-ratio * r`, so the fractions of `ratio * (k + 1)`,
moved by less than any gap, have one value in each gap: a code k stands for all fractions of a gap. Its factor may be
the ratio less an integer, which keeps the inner sum in the range of a byte.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.affine_fit import Points, apply, finest_shift
from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine

_MOVES = (2.0**-20, -(2.0**-20), 2.0**-16, -(2.0**-16))
"""Distances from the ties: floating point rounds results that are closer to them in either direction."""


@dataclass(frozen=True, eq=False)
class FunctionSum:
    """The tables n and k, the inner sum of k[x] and r, that of n[x] and it, and what the result lacks."""

    steps: NDArray[np.int8]
    codes: NDArray[np.int8]
    inner: Affine
    outer: Affine
    missing: Points
    """Indexed by the bytes x and r."""


def fit_function_sum(wanted: Points, ratio: float, limits: tuple[int, int]) -> FunctionSum | None:
    """The sums closest to `wanted`, indexed by the bytes x and r; None if `ratio` is too large.

    `limits` are the smallest and largest result, at which others end.
    """
    if abs(ratio) >= 2:
        return None
    rest = ratio - round(ratio)
    shift = finest_shift((rest, ratio))
    tried: list[FunctionSum] = []
    for move in _MOVES:
        rounded = round((rest + move) * (1 << shift)) - (1 << shift - 1)
        inner = Affine(round(rest * (1 << shift)), round(ratio * (1 << shift)), rounded, shift)
        tried.append(_closest(wanted, inner, limits))
        if not tried[-1].missing.any():
            break
    return min(tried, key=lambda made: int(np.count_nonzero(made.missing)))


def _closest(wanted: Points, inner: Affine, limits: tuple[int, int]) -> FunctionSum:
    every = all_bytes().astype(np.int64)
    sums = apply(*np.meshgrid(every, every, indexing="ij"), inner)
    steps, codes = np.zeros(256, np.int64), np.zeros(256, np.int64)
    ends = ((wanted == limits[0]) | (wanted == limits[1])).all(axis=1)
    for x, row in enumerate(wanted):
        inside = np.flatnonzero((row > limits[0]) & (row < limits[1]))
        step = row[0] - sums.max(axis=1) if row[0] == limits[0] else row[0] - sums.min(axis=1)
        if inside.size:
            at = inside[inside.size // 2]
            step = row[at] - sums[:, at]
        codes[x] = np.count_nonzero(row != np.clip(step[:, None] + sums, *limits), axis=1).argmin()
        steps[x] = step[codes[x]]
    # Steps of rows that are at a limit everywhere may be cut off.
    bounded = steps if ends.all() else steps[~ends]
    middle = (int(bounded.max()) + int(bounded.min()) + 1) // 2
    steps = np.clip(steps - middle, INT8_MIN, INT8_MAX)
    outer = Affine(1, 1, middle, 0)
    missing = wanted - np.clip(apply(np.repeat(steps, 256), sums[codes].ravel(), outer).reshape(256, 256), *limits)
    return FunctionSum(steps.astype(np.int8), all_bytes()[codes], inner, outer, missing)
