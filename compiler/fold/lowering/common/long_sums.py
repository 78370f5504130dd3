"""Sums over many pixels as products on the array: pixels become channels, each with a weight of one byte.

The array sums a limited number of channels. Larger images are first reduced to digits. The sum `s` of a window of 16
bytes has 12 bits. Its high digit is the byte `h = floor((s + 8) / 16)`, and its low digit `s - 16 * h` is from -8 to
7. The low digit follows from the sum of the bytes modulo 16, which is below 256. Each digit is an image with 16 times
fewer pixels: the sum of all s is 16 times the sum of the high digits plus the sum of the low digits. Padding has the
value of the zero point, so it adds nothing.

In a second step, a sum of 16 low digits is a byte. Two steps therefore give three images, with the weights 256, 16
and 1.
"""

import contextlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.lowering.common.spatial import SpatialOps
from intloom.compiler.fold.lowering.common.transposition import transpose
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.ir import AvgPool, Table, Tensor
from intloom.compiler.limits import MOST_CHANNELS
from intloom.compiler.refusals import Refusal, UnsupportedPattern
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
_MOST_WEIGHTS = 1 << 22
"""Of the windows of one image: a program stores them, and the array multiplies all of them."""


@dataclass(frozen=True)
class LongSum:
    """A tensor with pixels as channels, and the weight of each."""

    pixels: Tensor
    weights: NDArray[np.int8]
    """One for each channel; images of digits follow one another."""


def windows_of_blocks(windows: Window, x: Tensor) -> tuple[int, NDArray[np.int8]]:
    """The steps before the array sums windows, and their blocks.

    For each pixel of a digit, or of the image itself, and for each window: 1 if the window has its block, else 0.

    Raises
    ------
    UnsupportedPattern
        The image has too many pixels, or a window contains a part of a block.
    """
    choices = step_counts(x.height, x.width)
    if not choices:
        raise Refusal.WINDOW(
            f"it averages pixels of an image of {x.height} by {x.width}; two steps of 16 pixels each leave more than "
            f"the {MOST_CHANNELS} that the array adds",
            "average in two steps, each with a QuantizeLinear",
        )
    for steps in choices[:-1]:
        with contextlib.suppress(UnsupportedPattern):
            return steps, _blocks_after(steps, windows, x)
    return choices[-1], _blocks_after(choices[-1], windows, x)


def _blocks_after(steps: int, windows: Window, x: Tensor) -> NDArray[np.int8]:
    """The blocks of each window after some steps."""
    rows, columns = 1, 1
    for _ in range(steps):
        window = _window(-(-x.height // rows), -(-x.width // columns))
        rows, columns = rows * window[0], columns * window[1]
    outputs = windows.output((x.height, x.width))
    count = outputs[0] * outputs[1] * x.height * x.width // (rows * columns)
    if count > _MOST_WEIGHTS:
        raise Refusal.WINDOW(
            f"its {outputs[0]} by {outputs[1]} windows of {windows.kernel[0]} by {windows.kernel[1]} pixels need "
            f"{count} weights, at most {_MOST_WEIGHTS} are stored",
            "use larger strides, or average twice, with a QuantizeLinear each",
        )
    chosen = [_blocks_of(windows, axis, (x.height, x.width)[axis], (rows, columns)[axis]) for axis in (0, 1)]
    return np.einsum("iy,jx->yxij", *chosen).reshape(-1, *outputs)


def _blocks_of(windows: Window, axis: int, length: int, block: int) -> NDArray[np.int8]:
    """Along one axis for each window: 1 for its blocks, 0 for the others."""
    spans = windows.inside(axis, length)
    blocks = np.zeros((len(spans), -(-length // block)), np.int8)
    for number, (first, stop) in enumerate(spans):
        if first % block or (stop % block and stop != length):
            raise Refusal.WINDOW(
                f"its window of {windows.kernel[0]} by {windows.kernel[1]} has pixels {first} to {stop - 1} of "
                f"{length}; in an image of so many pixels, the array adds blocks of {block}",
                f"use windows and strides that are multiples of {block}, or average twice, with a QuantizeLinear each",
            )
        blocks[number, first // block : -(-stop // block)] = 1
    return blocks


def step_counts(height: int, width: int) -> list[int]:
    """Possible numbers of steps before the array sums the digits of an image, the best one first."""
    fitting = list[int]()
    for steps, factors in enumerate(_FACTORS):
        channels = height * width * len(factors)
        if channels <= MOST_CHANNELS:
            fitting.insert(0, steps)
        if channels <= _FEW_CHANNELS:
            break
        height, width = _reduced(height, width)
    # The vector unit sums the windows while the array works on other layers, so the last of the possible steps.
    return fitting


def emit_long_sum(mover: SpatialOps, x: Tensor, name: str, steps: int) -> LongSum:
    """Emit a tensor for which the sum of `weight * (pixel - zero point)` is that of all pixels of `x`.

    The sum over the pixels of any blocks is that of these blocks.
    """
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
    parts = [turned[k] for k in _READS[steps]]
    return LongSum(mover.builder.join(parts, f"{name}/joined", origin=mover.origin), weights)


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
