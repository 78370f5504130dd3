"""ConvTranspose with constant weights."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.weights import Weights, read_weights
from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.lowering.common.convolution import convolution
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.window import Window, read_pair
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import OnnxNode
from intloom.compiler.ir.node import Pair
from intloom.compiler.limits import LARGEST_KERNEL
from intloom.compiler.refusals import Refusal


@lowers("ConvTranspose")
def lower_conv_transpose(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a transposed convolution over images or, with one spatial dimension, over sequences."""
    main = unit.operator
    x = builder.image(main.input(0))
    weights = read_weights(builder.model, main.input(1), channel_axis=1)
    group = main.integer("group", 1)
    if weights.values.ndim == 3:
        # A sequence is an image of height 1.
        weights = replace(weights, values=weights.values[:, :, None])
    if weights.values.ndim != 4:
        raise Refusal.DIMENSIONS(
            f"it convolves over {weights.values.ndim - 2} dimensions", "use convolutions over one or two dimensions"
        )
    if group < 1 or weights.values.shape[0] != x.tensor.channels or x.tensor.channels % group:
        raise Refusal.INVALID(f"{group} groups do not cover {x.tensor.channels} channels", "correct the model")
    if group > 1 and weights.scale.size > 1:
        raise Refusal.WEIGHTS("it has groups and a scale per channel", "quantize its weights per tensor")
    values = output_first(weights.values, group)
    geometry, extra = transposed_geometry(main, (values.shape[2], values.shape[3]))
    if max(*geometry.kernel, *geometry.strides, *geometry.dilations) > LARGEST_KERNEL:
        raise Refusal.WINDOW(
            f"its kernel is {geometry.kernel}, with strides {geometry.strides} and dilations {geometry.dilations}",
            f"use at most {LARGEST_KERNEL} of each",
        )
    scale, result = weights.scale if group == 1 else weights.scale.reshape(()), builder.result(unit)
    node = convolution(builder, unit, x, Weights(values, scale, geometry, group, extra), result)
    builder.finish(unit, node, result, Target.ARRAY)


def transposed_geometry(node: OnnxNode, kernel: Pair) -> tuple[Window, Pair]:
    """Strides, dilations, the padding that is removed from the result, and what is added at its end."""
    strides, dilations = read_pair(node, "strides", 1), read_pair(node, "dilations", 1)
    pads, extra = node.integers("pads", (0, 0, 0, 0)), node.integers("output_padding", (0, 0))
    if len(extra) == 1:
        extra = (0, *extra)
    if len(pads) == 2:
        pads = (0, pads[0], 0, pads[1])
    if node.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or node.integers("output_shape", ()):
        raise Refusal.WINDOW("its padding is implicit", "give explicit pads")
    if len(pads) != 4 or min(*pads, *extra) < 0 or min(*strides, *dilations) < 1:
        raise Refusal.WINDOW(
            f"its pads are {pads} and {extra}, strides {strides}, dilations {dilations}",
            "use positive values over one or two dimensions",
        )
    return Window(kernel, strides, dilations, (pads[0], pads[1], pads[2], pads[3])), (extra[0], extra[1])


def output_first(weights: NDArray[np.int32], group: int) -> NDArray[np.int32]:
    """Transpose weights from ONNX's [in, out/group, …] to [out, in/group, …]."""
    inputs, each, rows, columns = weights.shape
    grouped = weights.reshape(group, inputs // group, each, rows, columns).swapaxes(1, 2)
    return np.ascontiguousarray(grouped).reshape(group * each, inputs // group, rows, columns)
