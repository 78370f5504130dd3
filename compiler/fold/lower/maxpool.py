"""MaxPool: the largest stored integer is the largest value, since scales are positive."""

from __future__ import annotations

from intloom.compiler.fold.lowering import Lowering, Refusal, Verdict, lowers, unit_name
from intloom.compiler.fold.moves import finish_move
from intloom.compiler.fold.padding import window
from intloom.compiler.fold.units import Unit
from intloom.compiler.ir import MaxPool


@lowers("MaxPool", "GlobalMaxPool")
def lower_maxpool(low: Lowering, unit: Unit) -> None:
    """Lower a pool over images."""
    main = unit.main
    assert main is not None
    if unit.body != main.outputs[0]:
        raise Refusal("its indices are used", "use only the pooled values")
    leaf = main.input(0)
    x = low.image(leaf)
    size = (x.tensor.height, x.tensor.width)
    geometry = window(main, x.tensor, size if main.op == "GlobalMaxPool" else None)
    if geometry.dilations != (1, 1):
        raise Refusal("its window is dilated", "use dilations of 1")
    node = MaxPool(
        name=unit_name(unit),
        inputs=(x.tensor.name,),
        output="",
        kernel=geometry.kernel,
        strides=geometry.strides,
        pads=geometry.pads,
    )
    finish_move(low, unit, x, leaf, node, Verdict.VECTOR)
