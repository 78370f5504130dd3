"""Integer graphs as ONNX files that Netron opens and onnxruntime runs, with the same bytes.

Convolutions become QLinearConv in int8 with scales of one; tables become Gather, whose negative indices count from the
end just as `value & 0xFF` does; affine operations become int64 arithmetic. The importer's emitter writes the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.compiler.importer import Constant, Model, OnnxNode, ValueType, to_bytes
from intloom.compiler.importer.model import Attribute
from intloom.compiler.ir import (
    Add,
    AvgPool,
    Concat,
    Conv,
    ConvTranspose,
    IntGraph,
    MaxPool,
    Mul,
    Node,
    Resize,
    Slice,
    Table,
)
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN, Affine

_OPSET = 17
_PART = 16
_LIFT = 1 << 16
"""Multiples of 2**shift that make every sum positive, so that division rounds down; far beyond any result."""


def to_onnx(graph: IntGraph) -> bytes:
    """The graph as a serialized ONNX model in mode `ort`, with int8 inputs and outputs.

    Raises
    ------
    UnsupportedError
        The graph has a custom operation, or a transposed convolution of very many products.
    """
    writer = _Writer()
    for node in graph.nodes:
        _write(writer, graph, node)
    types = {n: ValueType("int8", graph.tensors[n].shape) for n in (*graph.inputs, *graph.outputs)}
    model = Model(graph.name, tuple(writer.nodes), graph.inputs, graph.outputs, writer.constants, types, {"": _OPSET})
    return to_bytes(model)


@dataclass
class _Writer:
    """The ONNX nodes while they grow."""

    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)

    def constant(self, array: NDArray[np.generic], dtype: str) -> str:
        """Store an array; gives its name."""
        name = f"constant{len(self.constants)}"
        self.constants[name] = Constant(array, dtype)
        return name

    def integer(self, value: int) -> str:
        """Store an int64 scalar."""
        return self.constant(np.array(value, np.int64), "int64")

    def op(self, op: str, inputs: tuple[str, ...], output: str = "", **attributes: Attribute) -> str:
        """Add a node; gives its result."""
        output = output or f"value{len(self.nodes)}"
        self.nodes.append(OnnxNode(f"{op}{len(self.nodes)}", op, inputs, (output,), attributes))
        return output

    def table(self, table: bytes | None, value: str, output: str) -> None:
        """Pass a value through a table, or just name it."""
        if table is None:
            self.op("Identity", (value,), output)
            return
        stored = self.constant(np.frombuffer(table, np.int8), "int8")
        self.op("Gather", (stored, self.op("Cast", (value,), to=6)), output)


def _write(w: _Writer, graph: IntGraph, node: Node) -> None:
    match node:
        case ConvTranspose():
            w.table(node.table, _requantized(w, node, _transposed_sums(w, graph, node), node.bias), node.output)
        case Conv() if len(node.weights) > 1:
            w.table(node.table, _requantized(w, node, *_plane_sums(w, node)), node.output)
        case Conv():
            w.table(node.table, _conv(w, node), node.output)
        case Table():
            w.table(node.table, node.inputs[0], node.output)
        case Add():
            a, b = (w.op("Cast", (v,), to=7) for v in node.inputs)
            total = w.op(
                "Add", (w.op("Mul", (a, w.integer(node.affine.m1))), w.op("Mul", (b, w.integer(node.affine.m2))))
            )
            w.table(node.table, _affine(w, total, node.affine), node.output)
        case Mul():
            # int64 arithmetic: the products of the affine operation exceed 32 bits.
            zeros = (node.zero_a, node.zero_b)
            a, b = (
                w.op("Sub", (w.op("Cast", (v,), to=7), w.integer(z))) for v, z in zip(node.inputs, zeros, strict=True)
            )
            total = w.op("Mul", (w.op("Mul", (a, b)), w.integer(node.affine.m1)))
            w.table(node.table, _affine(w, total, node.affine), node.output)
        case AvgPool():
            w.table(node.table, _average(w, graph, node), node.output)
        case _:
            _write_move(w, node)


def _write_move(w: _Writer, node: Node) -> None:
    match node:
        case MaxPool():
            w.op("MaxPool", node.inputs, node.output, kernel_shape=node.kernel, strides=node.strides, pads=node.pads)
        case Resize():
            scales = w.constant(np.array([1, 1, *node.factors], np.float32), "float")
            modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            w.op("Resize", (node.inputs[0], "", scales), node.output, **modes)
        case Concat():
            w.op("Concat", node.inputs, node.output, axis=1)
        case Slice():
            bounds = (w.constant(np.array([v], np.int64), "int64") for v in (node.start, node.stop, 1))
            w.op("Slice", (node.inputs[0], *bounds), node.output)
        case _:
            raise UnsupportedError(f"node {node.name!r}: {type(node).__name__} has no form in ONNX")


def _conv(w: _Writer, node: Conv) -> str:
    """A QLinearConv. It subtracts the zero point itself, so what folding put into the bias comes out again."""
    weights = node.weights.sum(axis=0, dtype=np.int32)
    bias = node.bias + node.zp_in * weights.reshape(len(node.bias), -1).sum(axis=1)
    one, zero = w.constant(np.array(1, np.float32), "float"), w.constant(np.array(node.zp_in, np.int8), "int8")
    scale = np.ldexp(node.mantissa.astype(np.float64), -node.shift.astype(np.int64)).astype(np.float32)
    scales = w.constant(scale, "float")
    stored = w.constant(weights.astype(np.int8), "int8")
    zeros = w.constant(np.zeros(len(scale), np.int8), "int8")
    end = w.constant(np.array(node.zp_out, np.int8), "int8")
    start = w.constant(bias.astype(np.int32), "int32")
    inputs = (node.inputs[0], one, zero, stored, scales, zeros, one, end, start)
    shape = (node.weights.shape[3], node.weights.shape[4])
    return w.op(
        "QLinearConv",
        inputs,
        kernel_shape=shape,
        pads=node.pads,
        strides=node.strides,
        dilations=node.dilations,
        group=node.group,
    )


def _requantized(w: _Writer, node: Conv, sums: str, bias: NDArray[np.int32]) -> str:
    """`clamp(zp_out + round((sums + bias) * scale))` of int32 sums, in fp32 as mode `ort` defines it."""
    form = (1, len(bias), 1, 1)
    scale = np.ldexp(node.mantissa.astype(np.float64), -node.shift.astype(np.int64)).astype(np.float32)
    total = w.op("Add", (sums, w.constant(bias.astype(np.int32).reshape(form), "int32")))
    real = w.op("Mul", (w.op("Cast", (total,), to=1), w.constant(scale.reshape(form), "float")))
    moved = w.op("Add", (w.op("Round", (real,)), w.constant(np.array(node.zp_out, np.float32), "float")))
    limits = (w.constant(np.array(v, np.float32), "float") for v in (INT8_MIN, INT8_MAX))
    return w.op("Cast", (w.op("Clip", (moved, *limits)),), to=3)


def _plane_sums(w: _Writer, node: Conv) -> tuple[str, NDArray[np.int32]]:
    """int32 sums over both planes of weights, and the bias to add: ConvInteger subtracts the zero point itself."""
    zero = w.constant(np.array(node.zp_in, np.int8), "int8")
    parts = [
        w.op(
            "ConvInteger",
            (node.inputs[0], w.constant(plane, "int8"), zero),
            kernel_shape=plane.shape[2:],
            pads=node.pads,
            strides=node.strides,
            dilations=node.dilations,
            group=node.group,
        )
        for plane in node.weights
    ]
    sums = node.weights.sum(axis=0, dtype=np.int32).reshape(len(node.bias), -1).sum(axis=1)
    return w.op("Add", (parts[0], parts[1])), node.bias + node.zp_in * sums.astype(np.int32)


def _transposed_sums(w: _Writer, graph: IntGraph, node: ConvTranspose) -> str:
    """int32 sums of a transposed convolution, by float ones whose every sum fp32 holds: of weights' high and low parts.

    Raises
    ------
    UnsupportedError
        So many products are summed up that fp32 does not hold them.
    """
    weights = node.weights.sum(axis=0, dtype=np.int32)
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


def _average(w: _Writer, graph: IntGraph, node: AvgPool) -> str:
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
    return _affine(w, w.op("Mul", (total, w.integer(node.affine.m1))), node.affine)


def _affine(w: _Writer, total: str, affine: Affine) -> str:
    """`clamp((total + c) * 2**-shift)`, rounded to even or up."""
    if affine.shift:
        step, half = 1 << affine.shift, 1 << (affine.shift - 1)
        lifted = w.op("Add", (total, w.integer(affine.c + half + _LIFT * step)))
        quotient = w.op("Div", (lifted, w.integer(step)))
        if affine.even:
            exact = w.op("Equal", (w.op("Mul", (quotient, w.integer(step))), lifted))
            odd = w.op("Mod", (quotient, w.integer(2)))
            quotient = w.op("Sub", (quotient, w.op("Mul", (w.op("Cast", (exact,), to=7), odd))))
        total = w.op("Sub", (quotient, w.integer(_LIFT)))
    else:
        total = w.op("Add", (total, w.integer(affine.c)))
    clamped = w.op("Clip", (total, w.integer(INT8_MIN), w.integer(INT8_MAX)))
    return w.op("Cast", (clamped,), to=3)
