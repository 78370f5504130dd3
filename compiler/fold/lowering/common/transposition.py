"""Matrices of channels and pixels: transposition by a product with the identity matrix, and where results lie."""

from dataclasses import replace
from math import prod

import numpy as np

from intloom.compiler.fold.byte_order import matrices, row_major
from intloom.compiler.fold.graph_builder import GraphBuilder, as_image
from intloom.compiler.ir import MatMul, Tensor
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.arith import scale_from_float

_ONE = scale_from_float(1.0)
_MOST_CHANNELS = 1024
"""Most channels of a transposition: its identity matrix has their square in constants."""


def transpose(
    builder: GraphBuilder, x: Tensor, name: str, origin: tuple[str, ...], size: tuple[int, int] | None = None
) -> Tensor:
    """Emit a tensor with the pixels of `x` as channels and its channels as pixels of one row, or of this size."""
    if x.channels > _MOST_CHANNELS:
        raise Refusal.ORDER(
            f"its {x.channels} channels would be transposed by as many products for each value",
            f"transpose at most {_MOST_CHANNELS} channels",
        )
    height, width = size or (1, x.channels)
    unit = f"{name}/identity"
    builder.constant(unit, np.eye(x.channels, dtype=np.int8).reshape(x.channels, height, width), origin)
    made = replace(x, name=name, shape=(1, x.height * x.width, height, width))
    node = MatMul(
        name=name,
        inputs=(unit, x.name),
        output=name,
        mantissa=_ONE.mantissa,
        shift=_ONE.shift,
        zp_a=0,
        zp_b=x.zero_point,
        zp_out=x.zero_point,
        moves=True,
        origin=origin,
    )
    builder.emit(node, made)
    return made


def resized(builder: GraphBuilder, x: Tensor, size: tuple[int, int], origin: tuple[str, ...]) -> Tensor:
    """The tensor with its pixels in the same order in an image of this height and width: transposed twice."""
    name = f"{x.name}/{size[0]}x{size[1]}"
    if size == (x.height, x.width):
        return x
    if name not in builder.tensors:
        transpose(builder, transpose(builder, x, f"{name}/transposed", origin), name, origin, size)
    return builder.tensors[name]


def restore_order(builder: GraphBuilder, stored: str) -> None:
    """Emit a tensor that has the values of `stored` in the model's order.

    Raises
    ------
    UnsupportedPattern
        The values are neither whole channels nor transposed matrices.
    """
    order = builder.orders[stored]
    whole = builder.tensors[order.tensor]
    if builder.join_channels(stored):
        return
    turned = matrices(order, whole.height * whole.width)
    if turned.rows_are_channels:
        raise Refusal.ORDER("its values are in another order", "transpose on the host")
    parts = []
    for first, stop in turned.channels:
        part = builder.tensors[builder.channels(order.tensor, first, stop)]
        parts.append(transpose(builder, part, f"{part.name}/transposed/{stored}", ()))
    builder.views[stored] = (builder.join(parts, f"{stored}/in_order").name, order.shape)


def turn_to_image(builder: GraphBuilder, stored: str) -> None:
    """Emit an image of the values of `stored` whose pixels lie along channels, and channels along pixels.

    They do after a normalization of each channel, whose pixels were its last axis. Tokens of a sequence may only lie in
    an image of several rows.

    Raises
    ------
    UnsupportedPattern
        The values are in another order, or a sequence.
    """
    order = builder.orders.get(stored) or row_major(*builder.views[stored])
    whole, shape = builder.tensors[order.tensor], as_image(order.shape)
    origin = builder.producing_nodes.get(stored, ())
    if whole.channels == shape[1] and np.array_equal(order.positions.ravel(), np.arange(prod(whole.shape))):
        builder.views[stored] = resized(builder, whole, shape[2:], origin).name, order.shape
        return
    pixels, channels = np.arange(whole.channels), np.arange(whole.height * whole.width)
    # Sequences are better transposed by the host: only what is left of them fits the scratchpad.
    if min(shape[2:]) == 1 or not np.array_equal(
        order.positions.reshape(shape[1], -1), channels[:, None] + pixels * channels.size
    ):
        raise Refusal.ORDER("its values are not a transposed image", "transpose on the host")
    image = transpose(builder, whole, f"{stored}/image", origin, shape[2:])
    builder.views[stored] = image.name, order.shape
