"""Conv with constant weights: int32 bias that includes the zero point, one scale per channel."""

from dataclasses import replace

from intloom.compiler.fold.arithmetic.weights import Weights, read_weights
from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.border_kernels import without_padding_taps
from intloom.compiler.fold.lowering.common.convolution import convolution
from intloom.compiler.fold.lowering.common.large_kernels import fit_kernel
from intloom.compiler.fold.lowering.common.spatial import SpatialOps
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.window import read_window
from intloom.compiler.fold.target import Target
from intloom.compiler.refusals import Refusal


@lowers("Conv")
def lower_conv(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a convolution over images or, with one spatial dimension, over sequences."""
    main = unit.operator
    x = builder.image(main.input(0))
    weights = read_weights(builder.model, main.input(1))
    values = weights.values
    # A sequence is an image of height 1.
    if values.ndim == 3:
        values = values[:, :, None, :]
    if values.ndim != 4:
        raise Refusal.DIMENSIONS(
            f"it convolves over {values.ndim - 2} dimensions", "use convolutions over one or two dimensions"
        )
    geometry = read_window(main, x.tensor, (values.shape[2], values.shape[3]))
    group = main.integer("group", 1)
    if group < 1 or values.shape[1] * group != x.tensor.channels:
        raise Refusal.INVALID(
            f"{group} groups of {values.shape[1]} channels do not cover {x.tensor.channels}", "correct the model"
        )
    weights = Weights(values, weights.scale, geometry, group)
    weights = without_padding_taps(weights, (x.tensor.height, x.tensor.width))
    tensor, weights = fit_kernel(SpatialOps(builder, unit.origins), x.tensor, weights, unit_name(unit))
    result = builder.result(unit)
    node = convolution(builder, unit, replace(x, tensor=tensor), weights, result)
    builder.finish(unit, node, result, Target.ARRAY)
