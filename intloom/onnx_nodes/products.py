"""Convolutions and matrix products, evaluated by the front end and the golden model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.weights import array_weights
from intloom.compiler.fold.patterns.window import read_window
from intloom.compiler.importer import Constant, ValueType
from intloom.compiler.ir import Conv, Tensor
from intloom.compiler.ir.ops.conv import conv_sums
from intloom.onnx_nodes.folding import run_folded
from intloom.onnx_nodes.registry import Evaluation, evaluates

Array = NDArray[Any]


@evaluates("QLinearConv")
def qlinear_conv(e: Evaluation) -> tuple[Constant, ...]:
    """QLinearConv, as a folded convolution."""
    x, name = e.operand(0), e.node.inputs[0]
    constants = {n: c for n, c in zip(e.node.inputs[1:], e.operands[1:], strict=True) if n and c is not None}
    shape = e.model.shape(e.node.outputs[0])
    outputs = {e.node.outputs[0]: ValueType(e.operand(7).dtype, shape)}
    (result,) = run_folded(e.model, (e.node,), {name: x}, constants, outputs)
    return (Constant(result, e.operand(7).dtype),)


@evaluates("QLinearMatMul")
def qlinear_matmul(e: Evaluation) -> tuple[Constant, ...]:
    """QLinearMatMul, as a folded matrix product of each row."""
    a, b = e.operand(0), e.operand(3)
    dtype = e.operand(7).dtype
    batch = np.broadcast_shapes(a.array.shape[:-2], b.array.shape[:-2])
    left = np.broadcast_to(a.array, (*batch, *a.array.shape[-2:]))
    right = np.broadcast_to(b.array, (*batch, *b.array.shape[-2:]))
    result = np.empty((*batch, left.shape[-2], right.shape[-1]), left.dtype)
    rest = {
        n: c
        for i, (n, c) in enumerate(zip(e.node.inputs, e.operands, strict=True))
        if i not in (0, 3) and c is not None
    }
    outputs = {e.node.outputs[0]: ValueType(dtype, (1, right.shape[-1]))}
    for index in np.ndindex(*batch, left.shape[-2]):
        row = Constant(np.ascontiguousarray(left[index][None]), a.dtype)
        constants = {**rest, e.node.inputs[3]: Constant(right[index[:-1]], b.dtype)}
        (values,) = run_folded(e.model, (e.node,), {e.node.inputs[0]: row}, constants, outputs)
        result[index] = values[0]
    return (Constant(result, dtype),)


@evaluates("ConvInteger")
def conv_integer(e: Evaluation) -> tuple[Constant, ...]:
    """ConvInteger: the sums of the golden convolution, before requantization."""
    x, w = e.operand(0).array.astype(np.int32), e.operand(1).array.astype(np.int32)
    zero = int(e.operand(2).array.reshape(())) if e.given(2) else 0
    if e.given(3):
        w = w - e.operand(3).array.astype(np.int32).reshape(-1, *([1] * (w.ndim - 1)))
    shift = 128 if e.operand(0).dtype == "uint8" else 0
    tensor = Tensor("x", (1, *x.shape[1:]), 1.0, zero - shift, bool(shift))
    geometry = read_window(e.node, tensor, (w.shape[2], w.shape[3]))
    rows, columns = geometry.output((tensor.height, tensor.width))
    channels = w.shape[0]
    node = Conv(
        name=e.node.name, inputs=("x",), output="y", weights=array_weights(w, e.node.name),
        bias=np.zeros(channels, np.int32), mantissa=np.zeros(channels, np.uint32), shift=np.zeros(channels, np.uint8),
        zp_in=zero - shift, zp_out=0, pads=geometry.pads, strides=geometry.strides, dilations=geometry.dilations,
        group=e.node.integer("group", 1),
    )  # fmt: skip
    result = np.empty((x.shape[0], channels, rows, columns), np.int32)
    correction = (zero - shift) * w.reshape(channels, -1).sum(axis=1)
    for image, out in zip(x, result, strict=True):
        for which, lines, sums in conv_sums(node, (image - shift).astype(np.int8)):
            out[which, lines] = sums - correction[which, None, None]
    return (Constant(result, "int32"),)


@evaluates("MatMulInteger")
def matmul_integer(e: Evaluation) -> tuple[Constant, ...]:
    """Integer products of values minus their zero points; a vector of zero points goes by row of A, by column of B."""
    a, b = e.operand(0).array.astype(np.int32), e.operand(1).array.astype(np.int32)
    if e.given(2):
        zero = e.operand(2).array.astype(np.int32)
        a = a - (zero.reshape(-1, 1) if zero.ndim == 1 else zero)
    if e.given(3):
        b = b - e.operand(3).array.astype(np.int32)
    return (Constant(np.matmul(a, b).astype(np.int32), "int32"),)
