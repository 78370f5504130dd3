"""Integer operations of onnxruntime that define results of the accelerator: Softmax, normalizations and averages."""

from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from intloom.compiler.fold.arithmetic.integer_average import average_factor, divisor
from intloom.compiler.fold.arithmetic.integer_norm import norm_axis, norm_fields
from intloom.compiler.fold.arithmetic.integer_softmax import exponentials, full_result, softmax_axis
from intloom.compiler.fold.graph_builder import as_image
from intloom.compiler.fold.patterns.normalization import Normalization
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, QUANTIZE, read_qparams
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.reduction import reduced_axes
from intloom.compiler.fold.patterns.window import read_window
from intloom.compiler.importer import Array, Constant, Model, OnnxNode
from intloom.compiler.importer.model import INTEGER_RANGES
from intloom.compiler.ir import Norm, Tensor
from intloom.compiler.ir.onnx_export import written
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.ops.norm import norm_results
from intloom.compiler.ir.ops.softmax import quotients

Counts = NDArray[np.int64]
"""Number of values in each sum, in a shape that broadcasts against the sums."""

AVERAGES = frozenset({"GlobalAveragePool", "AveragePool", "ReduceMean", "ReduceSum", "QLinearAveragePool"})
"""Averages that onnxruntime may compute in float; for QLinearGlobalAveragePool it has an integer kernel."""
SOFTMAXES = frozenset({"Softmax", "QLinearSoftmax"})
"""Both have float kernels in onnxruntime."""
_CODES = (TensorProto.INT8, TensorProto.UINT8)
"""Element types, unsigned last."""


@dataclass
class IntegerForm:
    """The nodes and constants of an integer form."""

    model: Model
    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)

    def writer(self, node: OnnxNode) -> Writer:
        """A writer of nodes in place of a node of the model; `take` adds them."""
        return Writer(f"{node.name}/form/", self.model.opset)

    def take(self, w: Writer) -> None:
        """Add what was written."""
        nodes, constants = written(w)
        self.nodes += nodes
        self.constants |= constants

    def stored(self, w: Writer, name: str) -> str:
        """A constant of the model with one element, which may be a vector, as a scalar."""
        array = self.scalar(name)
        return w.constant(array, array.dtype)

    def scalar(self, name: str) -> Array:
        """The value of a constant with one element, which may be a vector."""
        return self.model.constants[name].array.reshape(())


def write_softmax(form: IntegerForm, node: OnnxNode) -> None:
    """Write the operations of a Softmax over more than two channels, in QDQ form or as a QLinearSoftmax."""
    if node.op == "QLinearSoftmax":
        _write_quotients(form, node, node.inputs[:3], node.inputs[3:5], node.outputs[0])
        return
    (quantize,) = form.model.users(node.outputs[0])
    stored, result = f"{node.name}/byte", quantize.inputs[1:]
    _write_quotients(form, node, form.model.producers[node.input(0)].inputs, result, stored)
    form.nodes.append(
        OnnxNode(f"{node.name}/result", DEQUANTIZE, (stored, *result), node.outputs, {}, origin=node.origin)
    )


def _write_quotients(
    form: IntegerForm, node: OnnxNode, operand: tuple[str, ...], result: tuple[str, ...], byte: str
) -> None:
    """Write the value `byte`: quotients of exponentials, rounded.

    `operand` is a stored value with its scale, and `result` are scale and zero point; both may have a zero point.
    """
    model, name, axis, w = form.model, node.name, softmax_axis(form.model, node), form.writer(node)
    x = read_qparams(model, OnnxNode(f"{name}/operand", DEQUANTIZE, operand, (f"{name}/value",), {}))
    y = read_qparams(model, OnnxNode(f"{name}/rounded", QUANTIZE, (f"{name}/value", *result), (byte,), {}))
    table = exponentials(float(x.scale), (model.shape(node.input(0)) or ())[axis])
    full = full_result(float(y.scale))
    assert full is not None  # else it would not run on the accelerator
    quotient = quotients(w, w.widened(operand[0]), table, full, axis)
    rounded = w.math("Min", w.math("Add", quotient, int(y.zero_point)), INTEGER_RANGES[y.dtype][1])
    w.op("Cast", (rounded,), byte, to=_CODES[y.unsigned])
    form.take(w)


def write_norm(form: IntegerForm, unit: QuantizationUnit, norm: Normalization) -> None:
    """Write the operations of a normalization in place of its unit's last operator."""
    model, node = form.model, unit.operator
    source, result = model.producers[norm.value], unit.quantize.inputs[1:3]
    x, y = read_qparams(model, source), read_qparams(model, unit.quantize)
    shape, w = model.shape(norm.value) or (), form.writer(node)
    axis = norm_axis(norm, shape)
    definition = Norm(name=node.name, inputs=(), output="", **norm_fields(norm, shape, axis, x, y))
    deviations = w.math("Sub", w.widened(source.inputs[0]), int(x.zero_point))
    moved = norm_results(w, deviations, definition, axis, len(shape), int(y.zero_point) - y.zero_int8)
    byte = w.op("Cast", (moved,), to=_CODES[y.unsigned])
    form.take(w)
    back = OnnxNode(f"{node.name}/result", DEQUANTIZE, (byte, *result), node.outputs[:1], {}, origin=node.origin)
    form.nodes.append(back)


def write_average(form: IntegerForm, node: OnnxNode, unit: QuantizationUnit | None) -> None:
    """Write the operations of an average; `unit` is that of a node in QDQ form."""
    w = form.writer(node)
    if unit is None:
        operand, result = node.inputs[:3], node.inputs[3:5]
        _write_rounded(form, w, _window_sums(form, w, node, operand), (operand[1], *result), node.outputs[0])
        form.take(w)
        return
    if node.op == "GlobalAveragePool" and not unit.clamps:
        form.nodes.append(node)  # onnxruntime has an integer kernel
        return
    operand, result = form.model.producers[node.input(0)].inputs, unit.quantize.inputs[1:3]
    sums = _window_sums if node.op == "AveragePool" else _whole_sums
    stored = f"{node.outputs[0]}/byte"
    _write_rounded(form, w, sums(form, w, node, operand), (operand[1], *result), stored)
    form.take(w)
    form.nodes.append(OnnxNode(f"{stored}/back", DEQUANTIZE, (stored, *result), node.outputs, {}, unit.quantize.domain))


def _write_rounded(
    form: IntegerForm, w: Writer, sums: tuple[str, Counts], parameters: tuple[str, ...], byte: str
) -> None:
    """Write the value `byte`: each sum times its factor, rounded.

    `parameters` are the input's scale, and scale and zero point of the result.
    """
    total, counts = sums
    x_scale, scale = (float(form.scalar(v)) for v in parameters[:2])
    factors = np.array([average_factor(x_scale, scale, int(n)) for n in counts.ravel()]).reshape(counts.shape)
    scaled = w.op("Mul", (w.op("Cast", (total,), to=TensorProto.FLOAT), w.constant(factors, np.float32)))
    w.op(QUANTIZE, (scaled, w.constant(1, np.float32), form.stored(w, parameters[2])), byte)


def _whole_sums(form: IntegerForm, w: Writer, node: OnnxNode, operand: tuple[str, ...]) -> tuple[str, Counts]:
    """Write the sums over whole axes of an operand (stored value, scale, zero point); also gives their divisors."""
    shape = form.model.shape(operand[0]) or ()
    axes = reduced_axes(form.model, node, len(shape))
    stored = w.op("Cast", (operand[0],), to=TensorProto.INT32)
    centered = w.op("Sub", (stored, w.constant(form.scalar(operand[2]), np.int32)))
    total = w.reduced("ReduceSum", centered, axes, keepdims=node.integer("keepdims", 1))
    return total, np.array(divisor(node.op, prod(shape[a] for a in axes)))


def _window_sums(form: IntegerForm, w: Writer, node: OnnxNode, operand: tuple[str, ...]) -> tuple[str, Counts]:
    """Write the sums of windows, as a convolution with weights of 1; also gives the pixels of each."""
    shape = form.model.shape(operand[0]) or ()
    image, rank = Tensor(operand[0], as_image(shape), 1.0, 0, True), len(shape) - 2
    window = read_window(node, image)
    ones = w.constant(np.ones((shape[1], 1, *window.kernel[2 - rank :])), np.uint8)
    pads = (*window.pads[2 - rank : 2], *window.pads[4 - rank :])
    operands = (operand[0], ones, form.stored(w, operand[2]))
    made = w.op("ConvInteger", operands, group=shape[1], strides=window.strides[2 - rank :], pads=pads)
    spans = [window.inside(axis, size) for axis, size in enumerate((image.height, image.width))]
    rows, columns = ([stop - first for first, stop in span] for span in spans)
    counts = np.outer(rows, columns)
    if node.integer("count_include_pad", 0):
        counts[:] = prod(window.kernel)
    return made, counts if rank == 2 else counts[0]
