"""MaxPool: the largest stored integer is the largest value, since scales are positive."""

from dataclasses import replace
from math import prod

from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.data_movement import finish_data_movement
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.window import Window, read_pool
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import MaxPool, Tensor
from intloom.compiler.ir.node import Pads, Pair
from intloom.compiler.limits import LARGEST_WINDOW
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.timing import SLIDING_TAPS

_BLOCK = 4
"""Rows and columns of which the maximum is taken first, in large images."""
_MOST_PIXELS = 7680
"""Of a window: the scratchpad of most presets has 8,192 words, and must hold them with one line of maxima."""
_LONGEST = 64
"""Longer windows are not taken in steps."""
_SIDE = SLIDING_TAPS // 2
"""Pixels before and after the middle of a step."""


@lowers("MaxPool", "GlobalMaxPool")
def lower_maxpool(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a maximum over windows of an image, or over the pixels of each channel."""
    main = unit.operator
    if unit.unclamped != main.outputs[0]:
        raise Refusal.WINDOW("its indices are read", "read only its first result")
    x = builder.image(main.input(0))
    size = (x.tensor.height, x.tensor.width)
    window = read_pool(main, x.tensor, None if main.op == "MaxPool" else size)
    source, window = largest_of_blocks(builder, unit, x.tensor, window)
    source, geometry = _in_steps(builder, unit, source, window)
    node = MaxPool(
        name=unit_name(unit),
        inputs=(source.name,),
        output="",
        kernel=geometry.kernel,
        strides=geometry.strides,
        pads=geometry.pads,
    )
    finish_data_movement(builder, unit, node, Target.VECTOR)


def largest_of_blocks(
    builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, window: Window
) -> tuple[Tensor, Window]:
    """Maxima of blocks of pixels, until a window that covers an axis fits the vector unit and the scratchpad.

    Raises
    ------
    UnsupportedPattern
        The window is too long, and covers no axis.
    """
    while max(window.kernel) > LARGEST_WINDOW or prod(window.kernel) > _MOST_PIXELS:
        down, across = (
            _BLOCK if k == n >= _BLOCK and not any(window.pads) else 1
            for k, n in zip(window.kernel, (x.height, x.width), strict=True)
        )
        if down == across == 1:
            raise Refusal.WINDOW(
                f"its window is {window.kernel}", f"use windows of at most {LARGEST_WINDOW}, or of all pixels"
            )
        rows, columns = -(-x.height // down), -(-x.width // across)
        name, block = f"{unit.output}/largest{rows}x{columns}", (down, across)
        pads = (0, 0, rows * down - x.height, columns * across - x.width)
        node = MaxPool(name=name, inputs=(x.name,), output=name, kernel=block, strides=block, pads=pads)
        x = replace(x, name=name, shape=(1, x.channels, rows, columns))
        builder.emit(replace(node, origin=unit.origins), x)
        kernel = (rows if down > 1 else window.kernel[0], columns if across > 1 else window.kernel[1])
        window = replace(window, kernel=kernel)
    return x, window


def _in_steps(builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, window: Window) -> tuple[Tensor, Window]:
    """Take maxima of a few pixels, until the rest of the window is as small; pools of one tensor share these maxima.

    The vector unit reads each word of `SLIDING_TAPS` pixels in a line once, and longer lines once for every output.
    """
    while True:
        long = [_is_long(window, axis) for axis in (0, 1)]
        if window.strides != (1, 1) or not any(long):
            return x, window
        kernel = (SLIDING_TAPS if long[0] else 1, SLIDING_TAPS if long[1] else 1)
        sides = [_SIDE if axis else 0 for axis in long]
        pads = (sides[0], sides[1], sides[0], sides[1])
        x = _step(builder, unit, x, kernel, pads)
        window = replace(
            window,
            kernel=(window.kernel[0] - kernel[0] + 1, window.kernel[1] - kernel[1] + 1),
            pads=(
                window.pads[0] - pads[0],
                window.pads[1] - pads[1],
                window.pads[2] - pads[2],
                window.pads[3] - pads[3],
            ),
        )


def _is_long(window: Window, axis: int) -> bool:
    """Whether the window along an axis is that of two maxima in a row: at the border, both leave out the padding."""
    ends = (window.pads[axis], window.pads[axis + 2])
    kernel = window.kernel[axis]
    return SLIDING_TAPS < kernel <= _LONGEST and all(_SIDE <= end <= kernel - 1 - _SIDE for end in ends)


def _step(builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, kernel: Pair, pads: Pads) -> Tensor:
    """The maxima of a tensor of the same size; those that the graph has already, if there are any."""
    wanted = ((x.name,), kernel, (1, 1), pads)
    for made in builder.nodes.values():
        if isinstance(made, MaxPool) and (made.inputs, made.kernel, made.strides, made.pads) == wanted:
            return builder.tensors[made.output]
    name = f"{x.name}/max{kernel[0]}x{kernel[1]}"
    result = replace(x, name=name)
    node = MaxPool(name=name, inputs=(x.name,), output=name, kernel=kernel, pads=pads, origin=unit.origins)
    builder.emit(node, result)
    return result
