"""Split and Slice along channels: a place inside another tensor."""

from __future__ import annotations

import numpy as np

from ...importer import OnnxNode
from ...ir import Slice
from ..lowering import Lowering, Operand, Refusal, Verdict, lowers, unit_name
from ..moves import finish_move
from ..units import Unit


@lowers("Split")
def lower_split(low: Lowering, unit: Unit) -> None:
    """Lower one output of a Split."""
    main = unit.main
    assert main is not None
    leaf = main.input(0)
    x = low.image(leaf)
    if main.integer("axis", 0) % len(x.shape) != 1:
        raise Refusal("it splits along another axis than channels", "split along channels")
    sizes = []
    for name in main.outputs:
        shape = low.model.shape(name)
        if shape is None:
            raise Refusal(f"the shape of {name!r} is not known", "give the sizes of the parts as a constant")
        sizes.append(shape[1])
    place = main.outputs.index(unit.body)
    _finish(low, unit, x, sum(sizes[:place]), sum(sizes[: place + 1]))


@lowers("Slice")
def lower_slice(low: Lowering, unit: Unit) -> None:
    """Lower a Slice of neighbouring channels."""
    main = unit.main
    assert main is not None
    x = low.image(main.input(0))
    start, stop = 0, x.shape[1]
    for axis, first, last in zip(*_bounds(low, main, len(x.shape)), strict=True):
        size = x.shape[axis]
        first, last, _ = slice(first, last).indices(size)
        if axis == 1:
            start, stop = first, last
        elif (first, last) != (0, size):
            raise Refusal("it slices another axis than channels", "slice along channels")
    if start >= stop:
        raise Refusal("it keeps no channel", "remove the node")
    _finish(low, unit, x, start, stop)


def _bounds(low: Lowering, node: OnnxNode, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Axes, starts and ends of a Slice with constant bounds and steps of 1."""
    arrays = []
    for index in (1, 2, 3, 4):
        value = low.model.constant(node.input(index)) if node.input(index) else np.array([], dtype=np.int64)
        if value is None:
            raise Refusal("its bounds are not constants", "slice by constants")
        arrays.append([int(v) for v in value.ravel()])
    starts, ends, axes, steps = arrays
    axes = [a % rank for a in axes] if axes else list(range(len(starts)))
    if any(s != 1 for s in steps) or not len(starts) == len(ends) == len(axes):
        raise Refusal("it steps over channels", "slice with steps of 1")
    return axes, starts, ends


def _finish(low: Lowering, unit: Unit, x: Operand, start: int, stop: int) -> None:
    main = unit.main
    assert main is not None
    name = unit_name(unit) if len(main.outputs) == 1 else f"{unit_name(unit)}:{main.outputs.index(unit.body)}"
    node = Slice(name=name, inputs=(x.tensor.name,), output="", start=start, stop=stop)
    finish_move(low, unit, x, main.input(0), node, Verdict.PLACEMENT)
