"""Sums over all pixels of an image, as products on the array: pixels become channels, each with a weight of one byte.

The array sums a limited number of channels. Larger images are first reduced to digits. The sum `s` of a window of 16
bytes has 12 bits. Its high digit is the byte `h = floor((s + 8) / 16)`, and its low digit `s - 16 * h` is from -8 to
7. The low digit follows from the sum of the bytes modulo 16, which is below 256. Each digit is an image with 16 times
fewer pixels: the sum of all s is 16 times the sum of the high digits plus the sum of the low digits. Padding has the
value of the zero point, so it adds nothing.

In a second step, a sum of 16 low digits is a byte. Two steps therefore give three images, with the weights 256, 16
and 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.lowering.common.limits import MOST_CHANNELS
from intloom.compiler.fold.lowering.common.spatial import SpatialOps
from intloom.compiler.fold.lowering.common.transposition import transpose
from intloom.compiler.ir import AvgPool, Concat, Table, Tensor
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine

_FEW_CHANNELS = 512
"""Channels of which the array transposes and sums the digits in a few thousand cycles."""
_BASE = 16
_HALF = _BASE // 2
_WINDOWS = ((4, 4), (2, 8), (8, 2))
"""16 pixels each, with the strides that a window may have."""
_HIGH_DIGIT = Affine(1, 0, 0, 4)
"""A sixteenth, halves rounded up."""
_OFFSET = 128
"""Between the sum of 16 remainders and its byte."""
_FACTORS = ((1,), (16, 1), (86, 85, 85, 16, 1))
"""For each number of steps the weights of the images: three have the same digits if their weight is above a byte."""
_READS = ((0,), (0, 1), (0, 0, 0, 1, 2))


@dataclass(frozen=True)
class LongSum:
    """A tensor with pixels as channels, and the weight of each."""

    pixels: Tensor
    weights: NDArray[np.int8]


def step_count(height: int, width: int) -> int | None:
    """Steps before the array sums the digits of an image; None if there are too many pixels."""
    fitting = []
    for steps, factors in enumerate(_FACTORS):
        channels = height * width * len(factors)
        if channels <= _FEW_CHANNELS:
            return steps
        if channels <= MOST_CHANNELS:
            fitting.append(steps)
        height, width = _reduced(height, width)
    # The vector unit sums the windows while the array works on other layers, so the last of the possible steps.
    return fitting[-1] if fitting else None


def emit_long_sum(mover: SpatialOps, x: Tensor, name: str) -> LongSum:
    """Emit a tensor for which the sum of `weight * (pixel - zero point)` is that of all pixels of `x`."""
    steps = step_count(x.height, x.width)
    assert steps is not None  # the caller rejects larger images
    images = [x]
    if steps:
        zero, lows = _zero_points(x.zero_point, steps)
        high, low = _split(mover, x, x.zero_point, lows[0] if steps == 1 else 0, f"{name}/1")
        images = [high, low]
        if steps > 1:
            images = [*_split(mover, high, x.zero_point, lows[0], f"{name}/2"), _sum(mover, low, lows[1], f"{name}/3")]
        images = [replace(i, zero_point=zero) for i in images]
        mover.builder.tensors.update({i.name: i for i in images})
    turned = [transpose(mover.builder, i, f"{i.name}/pixels", mover.origin) for i in images]
    weights = np.repeat(np.array(_FACTORS[steps], np.int8), turned[0].channels)
    return LongSum(_joined(mover, [turned[k] for k in _READS[steps]], f"{name}/joined"), weights)


def _joined(mover: SpatialOps, parts: list[Tensor], name: str) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    whole = replace(parts[0], name=name, shape=(1, sum(p.channels for p in parts), *parts[0].shape[2:]))
    node = Concat(name=name, inputs=tuple(p.name for p in parts), output=name, origin=mover.origin)
    mover.builder.emit(node, whole)
    return whole


def _zero_points(zero: int, steps: int) -> tuple[int, tuple[int, ...]]:
    """One zero point for all images, and the bytes that stand for low digits of 0, for a sum with `zero`.

    The high digits stand for `digit - zero`, so the sum of the weights times the errors of all zero points must be 0.
    """
    for common in (zero, zero + 1, zero - 1):
        last = common % _BASE
        middle = common + _BASE * (common - zero) + (common - last) // _BASE * (steps - 1)
        lows = (middle,) if steps == 1 else (middle, last)
        if middle - _HALF >= INT8_MIN and middle + _HALF - 1 <= INT8_MAX and INT8_MIN <= common <= INT8_MAX:
            return common, lows
    raise AssertionError(f"no zero point next to {zero}")


def _window(height: int, width: int) -> tuple[int, int]:
    """The window of 16 pixels that needs the least padding."""
    return min(_WINDOWS, key=lambda w: -(-height // w[0]) * -(-width // w[1]))


def _reduced(height: int, width: int) -> tuple[int, int]:
    rows, columns = _window(height, width)
    return -(-height // rows), -(-width // columns)


def _split(mover: SpatialOps, x: Tensor, zero: int, low_zero: int, name: str) -> tuple[Tensor, Tensor]:
    """The digits of the sums of windows: images of high digits and of low digits, with `low_zero` for 0."""
    remainders = (np.arange(256) % _BASE).astype(np.int8)
    rest = mover.emit(
        Table(name=f"{name}/rest", inputs=(x.name,), output=f"{name}/rest", table=remainders.tobytes()),
        x,
        (x.height, x.width),
    )
    # Indexed by the byte of the sum minus the offset.
    sums = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64) + _OFFSET
    low_digits = ((sums + _HALF) % _BASE - _HALF + low_zero).astype(np.int8)
    high = _pool(mover, x, zero, _HIGH_DIGIT, f"{name}/high")
    low = _pool(mover, rest, zero % _BASE, Affine(1, 0, -_OFFSET, 0), f"{name}/low", low_digits.tobytes())
    return high, low


def _sum(mover: SpatialOps, x: Tensor, zero: int, name: str) -> Tensor:
    """The sums of windows of low digits around 0, with `zero` for 0."""
    return _pool(mover, x, 0, Affine(1, 0, zero, 0), name)


def _pool(mover: SpatialOps, x: Tensor, fill: int, affine: Affine, name: str, table: bytes | None = None) -> Tensor:
    window, size = _window(x.height, x.width), _reduced(x.height, x.width)
    node = AvgPool(
        name=name,
        inputs=(x.name,),
        output=name,
        kernel=window,
        strides=window,
        pads=(0, 0, size[0] * window[0] - x.height, size[1] * window[1] - x.width),
        affine=affine,
        zp_in=fill,
        table=table,
    )
    return mover.emit(node, x, size)
