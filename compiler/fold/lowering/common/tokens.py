"""Tokens are pixels: the values of the last axis lie along channels, and every other axis counts pixels.

A sequence `[1, T, C]` is an image of T pixels with C channels, and a head of `[1, H, T, d]` is a range of channels.
Reshape, Transpose, Split and Gather between such forms change the recorded order of values only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isqrt, prod

import numpy as np

from intloom.compiler.fold.byte_order import MOST_RUNS, Ordered, Positions, Rows, as_rows, is_permutation, runs_of
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.common.spatial import SpatialOps, Steps
from intloom.compiler.fold.lowering.common.transposition import transpose
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Finding, Target
from intloom.compiler.ir import Tensor
from intloom.compiler.refusals import Refusal


@dataclass(frozen=True, eq=False)
class TokenParts:
    """A value with its last axis along channels: one tensor, or one of each matrix over the last two axes."""

    parts: tuple[Tensor, ...]
    pixels: Positions
    """For each row of a part its pixel."""
    columns: bool = False
    """The value has the matrices transposed: its columns are pixels."""

    def positions(self, shape: tuple[int, ...]) -> Positions:
        """Where values of this shape lie in the parts side by side along channels."""
        count, channels = len(self.parts), self.parts[0].channels
        row_major = np.arange(count * prod(self.parts[0].shape)).reshape(count, channels, -1)[:, :, self.pixels]
        if self.columns:
            # A part may have several matrices.
            return row_major.reshape(count, channels, -1, shape[-1]).swapaxes(1, 2).reshape(shape)
        return row_major.transpose(0, 2, 1).reshape(shape)


@dataclass(frozen=True, eq=False)
class Tokens(TokenParts):
    """The tokens of a dequantized value."""

    operand: Operand = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class TokenResults(TokenParts):
    """The tokens of a unit's result."""

    order: Positions = field(kw_only=True)
    """Where its values lie in the parts side by side along channels."""

    @property
    def in_model_order(self) -> bool:
        """Whether this is the model's order."""
        return np.array_equal(self.order.ravel(), np.arange(self.order.size))


def read_tokens(
    builder: GraphBuilder, unit: QuantizationUnit, value: str, *, columns: bool = False, apart: bool = False
) -> Tokens:
    """The tokens of a dequantized value: by addressing where its pixels are rows, else by a transposition.

    With `columns`, those of its matrices transposed. With `apart`, each matrix is a part.

    Raises
    ------
    UnsupportedPattern
        The rows of the value are neither pixels nor channels of a tensor.
    """
    operand, ordered = builder.operand_in_any_order(value), builder.ordered(value)
    assert ordered is not None  # the operand is of the graph
    positions = ordered.positions.swapaxes(-1, -2) if columns else ordered.positions
    length, every = positions.shape[-1], positions.size // positions.shape[-1]
    # All rows are one matrix, or the last two axes are, or a matrix has a row for each pixel. Matrices that are
    # transposed stay apart: a product finds them side by side along channels.
    pixels, lines = operand.tensor.height * operand.tensor.width, positions.reshape(every, length)
    sizes = [every, *positions.shape[-2:-1], pixels]
    if as_rows(lines, pixels) is None:
        # Matrices of all pixels need no convolutions that select pixels.
        whole = as_rows(lines[:pixels], pixels) is not None
        sizes = [pixels, *sizes[1:-1], every] if whole else [*sizes[1:], every]
    if columns or apart:
        sizes = [n for n in sizes if n == positions.shape[-2] or (n == every and not apart)]
    for rows in dict.fromkeys(n for n in sizes if every % n == 0):
        each = positions.reshape(-1, rows, length)
        every_part = [rows_as_pixels(builder, unit, ordered.tensor, matrix) for matrix in each]
        parts = [part for part in every_part if part is not None]
        if len(parts) == len(every_part) and all(np.array_equal(parts[0][1], pixels) for _, pixels in parts):
            return Tokens(tuple(tensor for tensor, _ in parts), parts[0][1], columns, operand=operand)
    raise Refusal.ORDER(
        f"the rows of its operand of shape {ordered.shape} are neither pixels nor channels of one tensor",
        "reshape and transpose tokens only by whole rows or columns",
    )


def rows_as_pixels(
    builder: GraphBuilder, unit: QuantizationUnit, name: str, matrix: Positions
) -> tuple[Tensor, Positions] | None:
    """The tensor with the rows of a matrix as pixels, and the pixel of each row."""
    pixels = builder.tensors[name].height * builder.tensors[name].width
    every = np.arange(pixels)
    rows = as_rows(matrix, pixels)
    if rows is not None and len(np.unique(rows.pixels)) == len(rows.pixels):
        tensor = select_channels(builder, name, rows.channels)
        whole = len(rows.pixels) == pixels
        if tensor is None or whole:
            return None if tensor is None else (tensor, rows.pixels)
        return _picked(builder, unit, tensor, rows, f"{tensor.name}/pixels/{unit.output}")
    columns = as_rows(matrix.T, pixels)
    if columns is None or not np.array_equal(columns.pixels, every):
        return None
    tensor = select_channels(builder, name, columns.channels)
    if tensor is None:
        return None
    turned = f"{tensor.name}/tokens"
    if turned not in builder.tensors:
        transpose(builder, tensor, turned, unit.origins, _grid(tensor.channels))
    return builder.tensors[turned], np.arange(tensor.channels)


def rows_along(builder: GraphBuilder, unit: QuantizationUnit, value: str, axis: int) -> TokenParts:
    """A tensor with the values of a dequantized value along an axis as channels of pixels.

    Raises
    ------
    UnsupportedPattern
        The rows are neither pixels nor channels of a tensor.
    """
    ordered = builder.ordered(value)
    assert ordered is not None  # the operand is of the graph
    matrix = np.moveaxis(ordered.positions, axis, -1).reshape(-1, ordered.shape[axis])
    part = rows_as_pixels(builder, unit, ordered.tensor, matrix)
    if part is None:
        raise Refusal.ORDER("its rows are neither pixels nor channels of one tensor", "reduce whole channels or pixels")
    return TokenParts((part[0],), part[1])


def matrices_apart(builder: GraphBuilder, unit: QuantizationUnit, batch: Ordered) -> Ordered | None:
    """A batch of matrices whose rows are different pixels of one tensor, moved to matrices side by side along channels.

    None if they are not. Products of each matrix then find their operands as channels and pixels.
    """
    if len(batch.shape) != 3 or not 1 < batch.shape[0] <= MOST_RUNS or batch.shape[1] == 1:
        return None
    tensor, undo = builder.tensors[batch.tensor], builder.checkpoint()
    parts = []
    for number, matrix in enumerate(batch.positions):
        rows = as_rows(matrix, tensor.height * tensor.width)
        whole = rows is not None and np.array_equal(rows.channels, np.arange(tensor.channels))
        part = _picked(builder, unit, tensor, rows, f"{unit.output}/matrix{number}") if rows and whole else None
        if part is None or not np.array_equal(part[1], np.arange(len(matrix))):
            undo()
            return None
        parts.append(part[0])
    positions = TokenParts(tuple(parts), np.arange(batch.shape[1])).positions(batch.shape)
    return Ordered(join_parts(builder, unit, parts, f"{unit.output}/apart").name, positions)


def _grid(count: int) -> tuple[int, int]:
    """Rows and columns for this number of pixels: an image of several rows can be computed in stripes."""
    height = next(n for n in range(isqrt(count), 0, -1) if count % n == 0)
    return height, count // height


def _picked(
    builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, rows: Rows, name: str
) -> tuple[Tensor, Positions] | None:
    """The tensor of some pixels, which are rows and columns with constant steps, and the pixel of each row there."""
    axes = [np.unique(rows.pixels // x.width), np.unique(rows.pixels % x.width)]
    every = (axes[0][:, None] * x.width + axes[1]).ravel()
    steps = [int(a[1] - a[0]) if len(a) > 1 else 1 for a in axes]
    kept = [Steps(int(a[0]), int(a[-1]) + 1, step) for a, step in zip(axes, steps, strict=True)]
    own = np.searchsorted(every, rows.pixels)
    if own.size != every.size or not is_permutation(own) or kept[0].count * kept[1].count != every.size:
        return None
    # Matrices of one operand may be other pixels of the same channels.
    name += "".join(f"/{s.start}_{s.stop}_{s.step}" for s in kept)
    picked = builder.tensors.get(name) or SpatialOps(builder, unit.origins).pick(x, kept[0], kept[1], name)
    return picked, own


def pick_values(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Emit a tensor of the values of a unit's result alone, where these are some channels of some pixels.

    Raises
    ------
    UnsupportedPattern
        They are not, or they are the whole tensor.
    """
    order = builder.orders[unit.output]
    whole = builder.tensors[order.tensor]
    channels, pixels = (np.unique(v) for v in np.divmod(order.positions, whole.height * whole.width))
    tensor = select_channels(builder, whole.name, channels)
    rows = Rows(channels, pixels)
    if tensor is None or not channels.size * pixels.size == order.positions.size < prod(whole.shape):
        raise Refusal.ORDER("its values are not channels of pixels", "select whole channels or pixels")
    picked = _picked(builder, unit, tensor, rows, f"{tensor.name}/pixels/{unit.output}")
    if picked is None:
        raise Refusal.ORDER("its pixels are not rows and columns", "select pixels with one step")
    channel, pixel = np.divmod(order.positions, whole.height * whole.width)
    if picked[0] is not tensor:
        # A Gather alone is addressing.
        for node in unit.nodes:
            builder.findings[node.name] = Finding(Target.ARRAY, "a convolution that selects pixels")
    positions = np.searchsorted(channels, channel) * pixels.size + np.searchsorted(pixels, pixel)
    builder.orders[unit.output] = Ordered(picked[0].name, positions)


def select_channels(builder: GraphBuilder, name: str, channels: Positions) -> Tensor | None:
    """A tensor of these channels, in this order; None if they are none or too many runs."""
    runs = runs_of(channels) if channels.size else None
    if runs is None:
        return None
    parts = [builder.tensors[builder.channels(name, *run)] for run in runs]
    joined = f"{name}/channels{'_'.join(str(v) for run in runs for v in run)}"
    return builder.tensors.get(joined) or builder.join(parts, joined)


def token_results(builder: GraphBuilder, unit: QuantizationUnit, x: TokenParts, channels: int) -> TokenResults:
    """Describe a unit's result: for each part of its operand a tensor with this number of channels."""
    whole = len(x.parts) == 1
    names = [f"{unit.output}/tokens{'' if whole else number}" for number in range(len(x.parts))]
    shape, params = (1, channels, x.parts[0].height, x.parts[0].width), builder.params(unit)
    parts = tuple(builder.tensor(name, shape, params) for name in names)
    result = ordered_results(builder, unit, TokenParts(parts, x.pixels, x.columns))
    # Only a tensor in the model's order has the name of the model's value.
    if whole and result.in_model_order:
        return replace(result, parts=(replace(result.parts[0], name=unit.output),))
    return result


def join_parts(builder: GraphBuilder, unit: QuantizationUnit, parts: Sequence[Tensor], name: str) -> Tensor:
    """One tensor with all parts of a unit along channels."""
    return builder.join(parts, name, name=unit_name(unit), origin=unit.origins)


def ordered_results(builder: GraphBuilder, unit: QuantizationUnit, result: TokenParts) -> TokenResults:
    """The parts of a unit's result with the order of its values.

    Raises
    ------
    UnsupportedPattern
        The shape of the result is unknown.
    """
    shape = builder.model.shape(unit.output)
    if shape is None or prod(shape) != sum(prod(p.shape) for p in result.parts):
        raise Refusal.OPEN_SIZE(f"the shape of {unit.output!r} is unknown", "export the model with fixed sizes")
    return TokenResults(result.parts, result.pixels, result.columns, order=result.positions(shape))


def bind_tokens(builder: GraphBuilder, unit: QuantizationUnit, result: TokenResults) -> None:
    """Join a unit's parts along channels, and record where the result's values lie."""
    in_order = result.in_model_order
    name = join_parts(builder, unit, result.parts, unit.output if in_order else f"{unit.output}/joined").name
    if in_order:
        builder.bind(unit.output, name)
    else:
        builder.orders[unit.output] = Ordered(name, result.order)
