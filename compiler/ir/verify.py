"""Checks every rule that an integer graph must obey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from intloom.common.errors import ModelError
from intloom.compiler.ir.graph import IntGraph, Tensor
from intloom.compiler.ir.ops import (
    Add,
    AvgPool,
    Concat,
    Conv,
    ConvTranspose,
    Custom,
    MaxPool,
    Mul,
    Node,
    Resize,
    Slice,
    Table,
)
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN, MAX_SHIFT, Affine

TABLE_BYTES = 256
Shape = tuple[int, int, int, int]


def verify(graph: IntGraph) -> None:
    """Check names, order, shapes and constants.

    Raises
    ------
    ModelError
        A rule is broken; the message names node, rule and value.
    """
    made = set(graph.inputs)
    _require(len(made) == len(graph.inputs), "graph", "inputs must be unique", graph.inputs)
    _require(len(set(graph.outputs)) == len(graph.outputs), "graph", "outputs must be unique", graph.outputs)
    names: set[str] = set()
    for node in graph.nodes:
        _require(node.name not in names, node.name, "names of nodes must be unique", node.name)
        names.add(node.name)
        for value in node.inputs:
            _require(value in made, node.name, "it must read tensors made before it", value)
        _require(node.output not in made, node.name, "a tensor must be made once", node.output)
        made.add(node.output)
        _require(node.output in graph.tensors, node.name, "its result must be described", node.output)
        _check_node(node, graph)
    for name in graph.outputs:
        _require(name in made, "graph", "outputs must be made", name)
    _require(
        made == set(graph.tensors), "graph", "tensors must be inputs or results", sorted(made ^ set(graph.tensors))
    )
    for name, tensor in graph.tensors.items():
        _check_tensor(name, tensor)


def _require(holds: bool, name: str, rule: str, was: object) -> None:
    if not holds:
        raise ModelError(f"integer graph, {name!r}: {rule}, but it was {was!r}")


def _check_tensor(name: str, tensor: Tensor) -> None:
    _require(tensor.name == name, name, "a tensor must be filed under its name", tensor.name)
    _require(
        tensor.shape[0] == 1 and min(tensor.shape) > 0,
        name,
        "shape must be (1, C, H, W)",
        tensor.shape,
    )
    _require(INT8_MIN <= tensor.zero_point <= INT8_MAX, name, "zero point must be an int8", tensor.zero_point)
    _require(tensor.scale > 0, name, "scale must be positive", tensor.scale)


def _check_node(node: Node, graph: IntGraph) -> None:
    rule = _RULES.get(type(node))
    _require(
        rule is not None, node.name, f"its kind must be one of {[k.__name__ for k in _RULES]}", type(node).__name__
    )
    operands = [graph.tensors[v] for v in node.inputs]
    counts = _COUNTS.get(type(node))
    _require(counts is None or len(operands) == counts, node.name, f"it must have {counts} operands", len(operands))
    table = getattr(node, "table", None)
    _require(
        table is None or len(table) == TABLE_BYTES, node.name, "its table must have 256 bytes", table and len(table)
    )
    if rule is None:
        return
    shape = rule(node, operands, graph.tensors[node.output].shape)
    _require(
        graph.tensors[node.output].shape == shape,
        node.name,
        f"its result must be {shape}",
        graph.tensors[node.output].shape,
    )


def _conv_shape(node: Conv, operands: list[Tensor], out: Shape) -> Shape:
    (x,) = operands
    _conv_constants(node, x)
    top, left, bottom, right = node.pads
    rows = (x.height + top + bottom - node.dilations[0] * (node.weights.shape[3] - 1) - 1) // node.strides[0] + 1
    columns = (x.width + left + right - node.dilations[1] * (node.weights.shape[4] - 1) - 1) // node.strides[1] + 1
    return (1, node.weights.shape[1], rows, columns)


def _transpose_shape(node: ConvTranspose, operands: list[Tensor], out: Shape) -> Shape:
    (x,) = operands
    _conv_constants(node, x)
    sizes = []
    for i, size in enumerate((x.height, x.width)):
        span = node.dilations[i] * (node.weights.shape[3 + i] - 1) + 1
        sizes.append((size - 1) * node.strides[i] + span - node.pads[i] - node.pads[i + 2] + node.output_padding[i])
    return (1, node.weights.shape[1], sizes[0], sizes[1])


def _conv_constants(node: Conv, x: Tensor) -> None:
    shape = node.weights.shape
    _require(
        node.weights.dtype == np.int8 and len(shape) == 5,
        node.name,
        "weights must be int8 of rank 5",
        (node.weights.dtype, shape),
    )
    _require(shape[0] in (1, 2), node.name, "weights must have one or two planes", shape[0])
    _require(
        node.group > 0 and shape[1] % node.group == 0,
        node.name,
        "groups must divide output channels",
        (node.group, shape[1]),
    )
    _require(
        shape[2] * node.group == x.channels, node.name, "weights must cover the input's channels", (shape, x.channels)
    )
    for name, kind in (("bias", np.int32), ("mantissa", np.uint32), ("shift", np.uint8)):
        array = getattr(node, name)
        _require(
            array.dtype == kind and array.shape == shape[1:2], node.name, f"{name} must be one per channel", array.shape
        )
    _require(
        int(node.mantissa.max()) < 1 << FP32_SIGNIFICAND_BITS,
        node.name,
        "a mantissa must fit 24 bits",
        int(node.mantissa.max()),
    )
    _require(
        int(node.shift.max()) <= MAX_SHIFT, node.name, f"a shift must be at most {MAX_SHIFT}", int(node.shift.max())
    )
    _require(node.zp_in == x.zero_point, node.name, "zp_in must be the input's zero point", (node.zp_in, x.zero_point))
    _require(min(node.pads) >= 0, node.name, "padding must not be negative", node.pads)
    _require(
        min(*node.strides, *node.dilations) > 0,
        node.name,
        "strides and dilations must be positive",
        (node.strides, node.dilations),
    )


def _check_affine(node: Node, affine: Affine) -> None:
    for value, bits in ((affine.m1, 32), (affine.m2, 32), (affine.c, 48)):
        _require(abs(value) < 1 << (bits - 1), node.name, f"a constant of its law must fit {bits} bits", value)
    _require(0 <= affine.shift <= 47, node.name, "the shift of its law must be from 0 to 47", affine.shift)


def _pair_shape(node: Add | Mul, operands: list[Tensor], out: Shape) -> Shape:
    _check_affine(node, node.affine)
    _require(
        operands[0].shape == operands[1].shape, node.name, "operands must have one shape", [o.shape for o in operands]
    )
    return operands[0].shape


def _pool_shape(node: MaxPool | AvgPool, operands: list[Tensor], out: Shape) -> Shape:
    (x,) = operands
    if isinstance(node, AvgPool):
        _check_affine(node, node.affine)
    _require(
        min(*node.kernel, *node.strides) > 0 and min(node.pads) >= 0,
        node.name,
        "its window must be positive",
        (node.kernel, node.strides, node.pads),
    )
    top, left, bottom, right = node.pads
    rows = (x.height + top + bottom - node.kernel[0]) // node.strides[0] + 1
    columns = (x.width + left + right - node.kernel[1]) // node.strides[1] + 1
    return (1, x.channels, rows, columns)


def _concat_shape(node: Concat, operands: list[Tensor], out: Shape) -> Shape:
    _require(len(operands) > 0, node.name, "it must have operands", 0)
    first = operands[0]
    for x in operands:
        _require(x.shape[2:] == first.shape[2:], node.name, "operands must have one height and width", x.shape)
    return (1, sum(x.channels for x in operands), first.height, first.width)


def _slice_shape(node: Slice, operands: list[Tensor], out: Shape) -> Shape:
    (x,) = operands
    _require(
        0 <= node.start < node.stop <= x.channels,
        node.name,
        f"its range must lie in 0..{x.channels}",
        (node.start, node.stop),
    )
    return (1, node.stop - node.start, x.height, x.width)


def _resize_shape(node: Resize, operands: list[Tensor], out: Shape) -> Shape:
    (x,) = operands
    _require(min(node.factors) > 0, node.name, "its factors must be positive", node.factors)
    return (1, x.channels, x.height * node.factors[0], x.width * node.factors[1])


def _same_shape(node: Node, operands: list[Tensor], out: Shape) -> Shape:
    return operands[0].shape


def _any_shape(node: Node, operands: list[Tensor], out: Shape) -> Shape:
    return out


_RULES: dict[type[Node], Callable[[Any, list[Tensor], Shape], Shape]] = {
    Conv: _conv_shape,
    ConvTranspose: _transpose_shape,
    Table: _same_shape,
    Add: _pair_shape,
    Mul: _pair_shape,
    MaxPool: _pool_shape,
    AvgPool: _pool_shape,
    Resize: _resize_shape,
    Concat: _concat_shape,
    Slice: _slice_shape,
    Custom: _any_shape,
}
_COUNTS: dict[type[Node], int] = {
    Conv: 1,
    ConvTranspose: 1,
    Table: 1,
    Add: 2,
    Mul: 2,
    MaxPool: 1,
    AvgPool: 1,
    Resize: 1,
    Slice: 1,
}
