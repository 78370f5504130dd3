"""MaxPool: the largest stored integer is the largest value, since scales are positive."""

from __future__ import annotations

from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.data_movement import finish_data_movement
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.unsupported import UnsupportedPattern
from intloom.compiler.fold.patterns.window import read_window
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import MaxPool


@lowers("MaxPool", "GlobalMaxPool")
def lower_maxpool(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a maximum over windows of an image."""
    main = unit.operator
    if unit.unclamped != main.outputs[0]:
        raise UnsupportedPattern("its indices are read", "read only its first result")
    leaf = main.input(0)
    x = builder.image(leaf)
    size = (x.tensor.height, x.tensor.width)
    geometry = read_window(main, x.tensor, size if main.op == "GlobalMaxPool" else None)
    if geometry.dilations != (1, 1):
        raise UnsupportedPattern("its window is dilated", "use dilations of 1")
    node = MaxPool(
        name=unit_name(unit),
        inputs=(x.tensor.name,),
        output="",
        kernel=geometry.kernel,
        strides=geometry.strides,
        pads=geometry.pads,
    )
    finish_data_movement(builder, unit, x, leaf, node, Target.VECTOR)
