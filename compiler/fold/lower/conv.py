"""Conv with constant weights: int32 bias with the zero point folded in, int8 weight planes, a scale per channel."""

from __future__ import annotations

from intloom.compiler.fold.lowering import Lowering, Refusal, lowers
from intloom.compiler.fold.padding import window
from intloom.compiler.fold.products import finish_product
from intloom.compiler.fold.units import Unit
from intloom.compiler.fold.weights import Weights, read_weights


@lowers("Conv")
def lower_conv(low: Lowering, unit: Unit) -> None:
    """Lower one convolution over images or, with one spatial dimension, over sequences."""
    main = unit.main
    assert main is not None
    x = low.image(main.input(0))
    weights = read_weights(low.model, main.input(1))
    values = weights.values
    if values.ndim == 3:
        values = values[:, :, None, :]
    if values.ndim != 4:
        raise Refusal(f"a convolution over {values.ndim - 2} dimensions", "use convolutions over one or two dimensions")
    geometry = window(main, x.tensor, (values.shape[2], values.shape[3]))
    group = main.integer("group", 1)
    if group < 1 or values.shape[1] * group != x.tensor.channels:
        raise Refusal(
            f"{group} groups of {values.shape[1]} channels do not cover {x.tensor.channels}", "correct the model"
        )
    finish_product(low, unit, x, Weights(values, weights.scale), geometry, group=group)
