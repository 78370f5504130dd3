"""Convolutions and products: QLinearConv in int8 with scales of one, or int32 sums and their requantization in fp32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.compiler.ir import Conv, ConvTranspose, IntGraph, MatMul
from intloom.compiler.ir.onnx_export.writer import Writer, exports
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN

_PART = 16


@exports(Conv)
def convolution(w: Writer, graph: IntGraph, node: Conv) -> None:
    """One QLinearConv; weights of nine bits as the sum of several ConvInteger."""
    int8 = node.weights.dtype == np.int8
    value = _conv(w, node) if int8 else _requantized(w, node, *_integer_sums(w, node))
    w.table(node.table, value, node.output)


@exports(ConvTranspose)
def transposed(w: Writer, graph: IntGraph, node: ConvTranspose) -> None:
    """Float convolutions whose sums are exact."""
    w.table(node.table, _requantized(w, node, _transposed_sums(w, graph, node), node.bias), node.output)


@exports(MatMul)
def product(w: Writer, graph: IntGraph, node: MatMul) -> None:
    """One QLinearMatMul of matrices of pixels and channels."""
    (a, b), one = (graph.tensors[name] for name in node.inputs), w.constant(np.array(1, np.float32), "float")
    pixels, columns = a.height * a.width, b.height * b.width
    left = _reshaped(w, node.inputs[0], (a.channels, pixels))
    right = _reshaped(w, node.inputs[1], (b.channels, columns))
    scale = w.constant(np.array(np.ldexp(float(node.mantissa), -node.shift), np.float32), "float")
    zeros = [w.constant(np.array(z, np.int8), "int8") for z in (node.zp_b, node.zp_a, node.zp_out)]
    turned = w.op("Transpose", (right,), perm=(1, 0))
    made = w.op("QLinearMatMul", (turned, scale, zeros[0], left, one, zeros[1], one, zeros[2]))
    w.table(node.table, _reshaped(w, made, (1, columns, a.height, a.width)), node.output)


def _reshaped(w: Writer, value: str, shape: tuple[int, ...]) -> str:
    return w.op("Reshape", (value, w.constant(np.array(shape, np.int64), "int64")))


def _conv(w: Writer, node: Conv) -> str:
    """A QLinearConv. It subtracts the zero point itself, so what folding put into the bias comes out again."""
    bias = node.bias + node.zp_in * node.weights.reshape(len(node.bias), -1).sum(axis=1, dtype=np.int32)
    one, zero = w.constant(np.array(1, np.float32), "float"), w.constant(np.array(node.zp_in, np.int8), "int8")
    scale = np.ldexp(node.mantissa.astype(np.float64), -node.shift.astype(np.int64)).astype(np.float32)
    scales = w.constant(scale, "float")
    stored = w.constant(node.weights, "int8")
    zeros = w.constant(np.zeros(len(scale), np.int8), "int8")
    end = w.constant(np.array(node.zp_out, np.int8), "int8")
    start = w.constant(bias.astype(np.int32), "int32")
    inputs = (node.inputs[0], one, zero, stored, scales, zeros, one, end, start)
    shape = (node.weights.shape[2], node.weights.shape[3])
    return w.op(
        "QLinearConv",
        inputs,
        kernel_shape=shape,
        pads=node.pads,
        strides=node.strides,
        dilations=node.dilations,
        group=node.group,
    )


def _requantized(w: Writer, node: Conv, sums: str, bias: NDArray[np.int32]) -> str:
    """`clamp(zp_out + round((sums + bias) * scale))` of int32 sums, in fp32 as mode `ort` defines it."""
    form = (1, len(bias), 1, 1)
    scale = np.ldexp(node.mantissa.astype(np.float64), -node.shift.astype(np.int64)).astype(np.float32)
    total = w.op("Add", (sums, w.constant(bias.astype(np.int32).reshape(form), "int32")))
    real = w.op("Mul", (w.op("Cast", (total,), to=1), w.constant(scale.reshape(form), "float")))
    moved = w.op("Add", (w.op("Round", (real,)), w.constant(np.array(node.zp_out, np.float32), "float")))
    limits = (w.constant(np.array(v, np.float32), "float") for v in (INT8_MIN, INT8_MAX))
    return w.op("Cast", (w.op("Clip", (moved, *limits)),), to=3)


def _int8_parts(weights: NDArray[Any]) -> Iterator[NDArray[np.int8]]:
    """Summands of the weights: onnxruntime's ConvInteger has no zero point for each channel."""
    rest = weights.astype(np.int32)
    while rest.any():
        part = np.clip(rest, INT8_MIN, INT8_MAX)
        yield part.astype(np.int8)
        rest = rest - part


def _integer_sums(w: Writer, node: Conv) -> tuple[str, NDArray[np.int32]]:
    """int32 sums over weights of nine bits, and the bias to add: ConvInteger subtracts the zero point itself."""
    zero = w.constant(np.array(node.zp_in, np.int8), "int8")
    parts = [
        w.op(
            "ConvInteger",
            (node.inputs[0], w.constant(part, "int8"), zero),
            kernel_shape=part.shape[2:],
            pads=node.pads,
            strides=node.strides,
            dilations=node.dilations,
            group=node.group,
        )
        for part in _int8_parts(node.weights)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = w.op("Add", (total, part))
    sums = node.weights.reshape(len(node.bias), -1).sum(axis=1, dtype=np.int32)
    return total, node.bias + node.zp_in * sums


def _transposed_sums(w: Writer, graph: IntGraph, node: ConvTranspose) -> str:
    """int32 sums of a transposed convolution, by float ones whose every sum fp32 holds: of weights' high and low parts.

    Raises
    ------
    UnsupportedError
        So many products are summed up that fp32 does not hold them.
    """
    weights = node.weights.astype(np.int32)
    low = weights & (_PART - 1)
    zero = w.constant(np.array(node.zp_in, np.float32), "float")
    x = w.op("Sub", (w.op("Cast", (node.inputs[0],), to=1), zero))
    parts = []
    for part, factor in ((low, 1), ((weights - low) // _PART, _PART)):
        reach = int(np.abs(part).reshape(len(part), -1).sum(axis=1).max()) * 255
        if reach > 1 << FP32_SIGNIFICAND_BITS:
            raise UnsupportedError(f"node {node.name!r}: ONNX's float ConvTranspose does not hold its sums")
        sums = w.op(
            "ConvTranspose",
            (x, w.constant(_input_first(part, node.group).astype(np.float32), "float")),
            kernel_shape=part.shape[2:],
            pads=node.pads,
            strides=node.strides,
            dilations=node.dilations,
            output_padding=node.output_padding,
            group=node.group,
        )
        whole = w.op("Cast", (sums,), to=6)
        parts.append(w.op("Mul", (whole, w.constant(np.array(factor, np.int32), "int32"))))
    return w.op("Add", (parts[0], parts[1]))


def _input_first(weights: NDArray[np.int32], group: int) -> NDArray[np.int32]:
    """From [out, in/group, …] to ONNX's [in, out/group, …]."""
    outputs, each, rows, columns = weights.shape
    grouped = weights.reshape(group, outputs // group, each, rows, columns).swapaxes(1, 2)
    return np.ascontiguousarray(grouped).reshape(group * each, outputs // group, rows, columns)
