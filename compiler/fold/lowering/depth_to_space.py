"""DepthToSpace and SpaceToDepth: a convolution, transposed or not, that copies one byte for each result."""

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.graph_builder import MOST_COPIES, GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.data_movement import finish_data_movement
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import OnnxNode
from intloom.compiler.ir.ops.conv import Conv, moving_conv
from intloom.compiler.ir.ops.conv_transpose import spreading_conv
from intloom.compiler.refusals import Refusal


@lowers("DepthToSpace", "SpaceToDepth")
def lower_depth_to_space(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower blocks of pixels that become channels, or the reverse (a pixel shuffle)."""
    main = unit.operator
    x, block = builder.image(main.input(0)), main.integer("blocksize", 1)
    spread = main.op == "DepthToSpace"
    deep = x.tensor.channels if spread else builder.result(unit).channels
    weights = _copies(main, deep, block)
    if weights.size > MOST_COPIES:
        raise Refusal.SIZE(f"it moves blocks of {deep} values", "use fewer channels, or leave it to the host")
    if spread:
        node: Conv = spreading_conv(unit_name(unit), x.tensor, weights)
    else:
        node = moving_conv(unit_name(unit), x.tensor, weights.swapaxes(0, 1), strides=(block, block))
    finish_data_movement(builder, unit, node, Target.ARRAY)


def _copies(node: OnnxNode, deep: int, block: int) -> NDArray[np.int8]:
    """[shallow, deep, row, column]: 1 where a channel of the deep image is that pixel of a block."""
    shallow = deep // block**2
    whole = np.eye(deep, dtype=np.int8)
    if node.text("mode", "DCR") == "CRD":
        return np.ascontiguousarray(whole.reshape(deep, shallow, block, block).swapaxes(0, 1))
    return np.ascontiguousarray(whole.reshape(deep, block, block, shallow).transpose(3, 0, 1, 2))
