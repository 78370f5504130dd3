"""MaxPool: the largest stored integer is the largest value, since scales are positive."""

from dataclasses import replace

from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.data_movement import finish_data_movement
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.window import Window, read_pool
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import MaxPool, Tensor
from intloom.compiler.ir.node import Pads, Pair
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.timing import SLIDING_TAPS

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
    source, geometry = _in_steps(builder, unit, x.tensor, window)
    node = MaxPool(
        name=unit_name(unit),
        inputs=(source.name,),
        output="",
        kernel=geometry.kernel,
        strides=geometry.strides,
        pads=geometry.pads,
    )
    finish_data_movement(builder, unit, node, Target.VECTOR)


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
