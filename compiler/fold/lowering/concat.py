"""Concat: one table per input converts all inputs to the scale of the result.

Along channels, the result is then a matter of addresses. Along height and width, each part is padded with zeros to the
size of the result, and the parts are added. Tokens, whose last axis lies along channels, are joined in the same ways.
"""

from dataclasses import replace
from math import prod

import numpy as np

from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes, to_int8, to_stored
from intloom.compiler.fold.arithmetic.tabulation import Int8s, clamp_table, evaluate_nodes
from intloom.compiler.fold.graph_builder import GraphBuilder, as_image, unit_name
from intloom.compiler.fold.lowering.common.spatial import SpatialOps
from intloom.compiler.fold.lowering.common.tokens import (
    TokenParts,
    bind_tokens,
    join_parts,
    ordered_results,
    read_tokens,
)
from intloom.compiler.fold.lowering.common.transposition import resized
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.qparams import read_qparams
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Concat, Tensor
from intloom.compiler.refusals import Refusal, UnsupportedPattern


@lowers("Concat")
def lower_concat(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a Concat of images along channels, height or width, or of tokens along any axis but the batch."""
    main = unit.operator
    tables = _rescaling(builder, unit)
    undo = builder.checkpoint()
    try:
        operands = enumerate(zip(main.inputs, tables, strict=True))
        parts = [_part(builder, unit, value, table, k) for k, (value, table) in operands]
    except UnsupportedPattern:
        undo()
        _join_tokens(builder, unit, tables)
        return
    rank, result = len(builder.model.shape(unit.output) or ()), builder.result(unit)
    axis = main.integer("axis", 1) % rank
    if axis != 1:
        _join(builder, unit, parts, result, down=axis == 2 and rank == 4)
        return
    node = Concat(name=unit_name(unit), inputs=tuple(parts), output=result.name)
    builder.finish(unit, node, result, Target.PLACEMENT)


def _part(builder: GraphBuilder, unit: QuantizationUnit, value: str, table: Int8s, index: int) -> str:
    """An operand as an image with the scale of the result."""
    stored = _stored(builder, value)
    if stored is None:
        return _rescaled(builder, unit, builder.image(value).tensor, table, index)
    _, *shape = as_image(stored.shape)
    return _constant(builder, unit, table[stored.view(np.uint8)].reshape(shape), index).name


def _join(builder: GraphBuilder, unit: QuantizationUnit, parts: list[str], result: Tensor, *, down: bool) -> None:
    """Bind the result to the sum of the padded parts."""
    mover, at = SpatialOps(builder, unit.origins), 0
    placed = []
    for name in parts:
        # After rescaling, every part has the scale of the result.
        part = builder.tensors[name]
        placed.append((part, (at, 0) if down else (0, at)))
        at += part.height if down else part.width
    whole = mover.join(placed, (result.height, result.width), result.name)
    builder.bind(unit.output, whole.name)
    builder.assign(unit, Target.VECTOR, "padded parts, added")


def _rescaling(builder: GraphBuilder, unit: QuantizationUnit) -> list[Int8s]:
    """Table of onnxruntime's Concat for every byte of each input."""
    main = unit.operator
    # Rescaling does not depend on the axis: one Concat of the vectors of all bytes gives the tables of all inputs.
    line = replace(main, attributes={**main.attributes, "axis": 0}, inputs=tuple(main.inputs))
    sources = [builder.model.producers[v] for v in main.inputs]
    nodes = (*sources, line, replace(unit.quantize, inputs=(unit.unclamped, *unit.quantize.inputs[1:])))
    if main.qoperator is not None:
        nodes = (replace(main.qoperator, attributes={**main.qoperator.attributes, "axis": 0}),)
    feeds = {n.inputs[0]: to_stored(all_bytes(), read_qparams(builder.model, n).unsigned) for n in sources}
    tables = evaluate_nodes(builder.model, nodes, feeds, unit.output, builder.options.match)
    clamps = clamp_table(builder, unit)
    return list(np.split(tables if clamps is None else clamps[tables.view(np.uint8)], len(main.inputs)))


def _join_tokens(builder: GraphBuilder, unit: QuantizationUnit, tables: list[Int8s]) -> None:
    """Join tokens along channels, or row by row with constants among them."""
    main, shape = unit.operator, builder.model.shape(unit.output) or ()
    axis = main.integer("axis", 1) % max(1, len(shape))
    constants = {k: v for k, v in enumerate(main.inputs) if _stored(builder, v) is not None}
    tokens = {k: read_tokens(builder, unit, v) for k, v in enumerate(main.inputs) if k not in constants}
    by_rows = axis < len(shape) - 1
    if not tokens or any(len(t.parts) > 1 for t in tokens.values()) or (by_rows and prod(shape[:axis]) > 1):
        raise Refusal.ORDER("it joins values that are not rows of one matrix each", "join rows, or along channels")
    parts = {k: builder.tensors[_rescaled(builder, unit, t.parts[0], tables[k], k)] for k, t in tokens.items()}
    first = next(iter(tokens.values()))
    if not by_rows:
        if constants or not all(np.array_equal(t.pixels, first.pixels) for t in tokens.values()):
            raise Refusal.ORDER("it joins values with different rows", "reshape all in the same way")
        size = next(iter(parts.values())).shape[2:]
        joined = [resized(builder, p, size, unit.origins) for p in parts.values()]
        part = join_parts(builder, unit, joined, f"{unit.output}/tokens")
        bind_tokens(builder, unit, ordered_results(builder, unit, TokenParts((part,), first.pixels)))
        builder.assign(unit, Target.PLACEMENT)
        return
    rows, at, placed, pixels = prod(shape[:-1]), 0, [], []
    for k, value in enumerate(main.inputs):
        if k in constants:
            stored = _stored(builder, value)
            assert stored is not None  # a constant
            values = tables[k][stored.reshape(-1, shape[-1]).view(np.uint8)]
            part, count = _constant_rows(builder, unit, values, at, k), len(values)
            placed.append((part, (0, 0)))
            pixels.append(np.arange(count))
        else:
            count = len(tokens[k].pixels)
            placed.append((resized(builder, parts[k], (1, count), unit.origins), (0, at)))
            pixels.append(tokens[k].pixels)
        pixels[-1] = pixels[-1] + at
        at += count
    whole = SpatialOps(builder, unit.origins).join(placed, (1, rows), f"{unit.output}/tokens")
    bind_tokens(builder, unit, ordered_results(builder, unit, TokenParts((whole,), np.concatenate(pixels))))
    builder.assign(unit, Target.VECTOR, "padded parts, added")


def _stored(builder: GraphBuilder, value: str) -> Int8s | None:
    """The integers of a constant operand."""
    array = builder.model.constant(builder.model.producers[value].inputs[0])
    return None if array is None else to_int8(array)


def _constant_rows(builder: GraphBuilder, unit: QuantizationUnit, values: Int8s, at: int, index: int) -> Tensor:
    """Emit a constant with these rows from row `at` of the result on, and zeros in the other rows."""
    shape = builder.model.shape(unit.output) or ()
    image = np.zeros((shape[-1], 1, prod(shape[:-1])), np.int8)
    image[:, 0, at : at + len(values)] = values.T
    return _constant(builder, unit, image, index)


def _constant(builder: GraphBuilder, unit: QuantizationUnit, image: Int8s, index: int) -> Tensor:
    """Emit a constant of channels, rows and columns as an operand."""
    like = builder.tensor(unit.output, (1, *image.shape), builder.params(unit))
    return builder.constant(f"{unit.output}/in{index}", image, unit.origins, like)


def _rescaled(builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, table: Int8s, index: int) -> str:
    """The operand's tensor, or the result of `table` on it if the table is not the identity."""
    name = f"{unit.output}/in{index}"
    part = builder.tensor(name, x.shape, builder.params(unit))
    same = (x.scale, x.zero_point) == (part.scale, part.zero_point)
    if same and np.array_equal(table, all_bytes()):
        return x.name
    node = builder.table_node(f"{unit_name(unit)}/rescale{index}", x.name, table, name)
    builder.emit(replace(node, origin=unit.origins), part)
    return name
