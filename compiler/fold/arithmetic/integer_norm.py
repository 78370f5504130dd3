"""The integers of a normalization of the model: constants per channel and epsilon."""

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from intloom.compiler.fold.patterns.normalization import Normalization
from intloom.compiler.fold.patterns.qparams import QParams
from intloom.compiler.importer import Array
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.norm import (
    EPSILON_BITS,
    GAMMA_FRACTION,
    LARGEST_COUNT,
    error_bound,
    fits,
    integer_constant,
    integer_epsilon,
)


def norm_axis(norm: Normalization, shape: tuple[int, ...]) -> int:
    """The one axis that is normalized over.

    Raises
    ------
    UnsupportedPattern
        There are several, or it is too long.
    """
    long = [a for a in norm.axes if shape[a] > 1] or [norm.axes[-1]]
    if len(long) != 1:
        raise Refusal.NORMALIZATION(f"it normalizes over axes {norm.axes}", "normalize over one axis")
    if shape[long[0]] > LARGEST_COUNT:
        raise Refusal.NORMALIZATION(
            f"it normalizes over {shape[long[0]]} values", f"at most {LARGEST_COUNT} are supported"
        )
    return long[0]


def norm_fields(norm: Normalization, shape: tuple[int, ...], axis: int, x: QParams, y: QParams) -> dict[str, Any]:
    """The fields of the operation.

    Raises
    ------
    UnsupportedPattern
        They do not fit, or a result could be more than 1 from the real one.
    """
    count, scale = shape[axis], Fraction(float(y.scale))
    rows = zip(*(_along(a, len(shape), axis, count) for a in (norm.gamma, norm.beta)), strict=True)
    real = [(Fraction(float(g)) / scale, Fraction(float(b)) / scale + y.zero_int8) for g, b in rows]
    constants = [integer_constant(g, b) for g, b in real]
    largest = max(abs(g) for g, _ in real)
    if not all(map(fits, constants)) or error_bound(count, largest) > 1:
        raise Refusal.RANGE(
            f"a factor is {float(largest):.1f} or an offset {float(max(abs(b) for _, b in real)):.0f} times the scale "
            "of the result",
            f"quantize the result so that factors are below {1 << 15 - GAMMA_FRACTION} and offsets below 512",
        )
    if norm.least > x.scale:
        raise Refusal.RANGE(f"lengths below {norm.least} are not divided by", "quantize its input with a larger scale")
    epsilon = integer_epsilon(Fraction(float(norm.epsilon.reshape(()))), Fraction(float(x.scale)), count)
    if not 0 <= epsilon < 1 << EPSILON_BITS:
        raise Refusal.RANGE("its epsilon is larger than any variance of the input", "quantize its input again")
    gamma, beta = (np.array(column, np.int16) for column in zip(*constants, strict=True))
    return {"gamma": gamma, "beta": beta, "center": norm.center, "zp_in": x.zero_int8, "epsilon": epsilon}


def _along(constant: Array, rank: int, axis: int, count: int) -> Array:
    """A constant that broadcasts against the value, for each position of the axis."""
    shape = (1,) * (rank - constant.ndim) + constant.shape
    if constant.ndim > rank or prod(shape) != shape[axis] or shape[axis] not in (1, count):
        raise Refusal.NORMALIZATION(
            f"a constant of shape {constant.shape} differs along other axes", "use one per channel"
        )
    if not np.isfinite(constant).all():
        raise Refusal.NORMALIZATION("a constant is not finite", "check the model")
    return np.broadcast_to(constant.reshape(-1), (count,))
