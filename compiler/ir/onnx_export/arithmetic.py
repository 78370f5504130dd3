"""Tables, and affine operations in int64: their products exceed 32 bits."""

from __future__ import annotations

import numpy as np

from intloom.compiler.ir import Add, AvgPool, IntGraph, Mul, Softmax, Table
from intloom.compiler.ir.onnx_export.writer import Writer, affine, exports
from intloom.hw.spec.arith import INT8_MAX
from intloom.hw.spec.softmax import QUOTIENT_BITS, unpack_exponentials


@exports(Table)
def table(w: Writer, graph: IntGraph, node: Table) -> None:
    """Gather."""
    w.table(node.table, node.inputs[0], node.output)


@exports(Add)
def add(w: Writer, graph: IntGraph, node: Add) -> None:
    """Weighted sum."""
    a, b = (w.op("Cast", (v,), to=7) for v in node.inputs)
    total = w.op("Add", (w.op("Mul", (a, w.integer(node.affine.m1))), w.op("Mul", (b, w.integer(node.affine.m2)))))
    w.table(node.table, affine(w, total, node.affine), node.output)


@exports(Mul)
def mul(w: Writer, graph: IntGraph, node: Mul) -> None:
    """Product of the operands without their zero points."""
    zeros = (node.zero_a, node.zero_b)
    a, b = (w.op("Sub", (w.op("Cast", (v,), to=7), w.integer(z))) for v, z in zip(node.inputs, zeros, strict=True))
    total = w.op("Mul", (w.op("Mul", (a, b)), w.integer(node.affine.m1)))
    w.table(node.table, affine(w, total, node.affine), node.output)


@exports(AvgPool)
def average(w: Writer, graph: IntGraph, node: AvgPool) -> None:
    """Sums of windows, as a convolution with ones per channel, then the affine operation."""
    channels = graph.tensors[node.inputs[0]].channels
    ones = w.constant(np.ones((channels, 1, *node.kernel), np.int8), "int8")
    zero = w.constant(np.array(node.zp_in, np.int8), "int8")
    # ConvInteger sums `x - zp`, and what it pads with then counts as zero, as the graph's padding by zp_in does.
    sums = w.op(
        "ConvInteger",
        (node.inputs[0], ones, zero),
        kernel_shape=node.kernel,
        strides=node.strides,
        pads=node.pads,
        group=channels,
    )
    size = node.kernel[0] * node.kernel[1]
    total = w.op("Add", (w.op("Cast", (sums,), to=7), w.integer(size * node.zp_in)))
    scaled = w.op("Mul", (total, w.integer(node.affine.m1)))
    w.table(node.table, affine(w, scaled, node.affine), node.output)


@exports(Softmax)
def softmax(w: Writer, graph: IntGraph, node: Softmax) -> None:
    """Exponentials by Gather, and a division in int64."""
    table = w.constant(np.array(unpack_exponentials(node.exponentials)), "int64")
    value = w.op("Cast", (node.inputs[0],), to=7)
    index = w.op("Sub", (w.op("Add", (value, w.integer(255))), w.op("ReduceMax", (value,), axes=(1,))))
    found = w.op("Gather", (table, index))
    # A sum of 0 divides 0: the quotient is then more than any byte.
    total = w.op("ReduceSum", (found, w.constant(np.array([1], np.int64), "int64")))
    none = w.op("Cast", (w.op("Equal", (total, w.integer(0))),), to=7)
    half = w.op("Div", (total, w.integer(2)))
    scaled = w.op("Add", (w.op("Mul", (found, w.integer(256 - node.less))), half))
    lifted = w.op("Add", (scaled, w.op("Mul", (none, w.integer((1 << QUOTIENT_BITS) - 1)))))
    quotient = w.op("Div", (lifted, w.op("Add", (total, none))))
    moved = w.op("Add", (quotient, w.integer(node.zp_out)))
    w.op("Cast", (w.op("Min", (moved, w.integer(INT8_MAX))),), node.output, to=3)
