"""Integer operations of onnxruntime that define results of the accelerator: Softmax, normalizations and averages."""

from dataclasses import dataclass, field
from itertools import count
from math import prod

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from intloom.compiler.fold.arithmetic.integer_average import average_factor
from intloom.compiler.fold.arithmetic.integer_norm import norm_axis, norm_fields
from intloom.compiler.fold.arithmetic.integer_softmax import exponentials, full_result, softmax_axis
from intloom.compiler.fold.graph_builder import as_image
from intloom.compiler.fold.patterns.normalization import Normalization
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, QUANTIZE, read_qparams
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.reduction import reduced_axes
from intloom.compiler.fold.patterns.window import Window, read_window
from intloom.compiler.importer import Array, Constant, Model, OnnxNode
from intloom.compiler.importer.model import INTEGER_RANGES
from intloom.compiler.ir import Norm, Tensor
from intloom.compiler.ir.ops.norm import IntegerForm
from intloom.hw.spec.formats import TABLE_BYTES

Counts = NDArray[np.int64]
"""Number of values in each sum, in a shape that broadcasts against the sums."""

AVERAGES = frozenset({"GlobalAveragePool", "AveragePool", "ReduceMean", "QLinearAveragePool"})
"""Averages that onnxruntime may compute in float; for QLinearGlobalAveragePool it has an integer kernel."""
SOFTMAXES = frozenset({"Softmax", "QLinearSoftmax"})
"""Both have float kernels in onnxruntime."""
_FIRST_AXES_AS_INPUT = {"ReduceMax": 18, "ReduceSum": 13}


@dataclass
class FormWriter:
    """The nodes and constants of an integer form."""

    model: Model
    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)

    def constant(self, name: str, array: Array) -> str:
        """Store an array under a name; returns the name."""
        self.constants[name] = Constant(array, str(array.dtype) if array.dtype != np.float32 else "float")
        return name

    def add(self, op: str, inputs: tuple[str, ...], name: str, **attributes: int | tuple[int, ...]) -> str:
        """Add a node whose result has this name; returns the name."""
        self.nodes.append(OnnxNode(f"{name}/{op}", op, inputs, (name,), attributes))
        return name

    def reshape(self, value: str, name: str, shape: tuple[int, ...]) -> str:
        """Add a Reshape."""
        return self.add("Reshape", (value, self.constant(f"{name}/shape", np.array(shape, np.int64))), name)

    def pad(self, value: str, name: str, pads: list[int], fill: str) -> str:
        """Add a Pad."""
        return self.add("Pad", (value, self.constant(f"{name}/pads", np.array(pads, np.int64)), fill), name)

    def reduced(self, op: str, value: str, axes: tuple[int, ...], keepdims: int = 1) -> str:
        """Add a reduction over some axes, which are an input from some opset on."""
        name = f"{value}/{op}"
        if self.model.opset >= _FIRST_AXES_AS_INPUT[op]:
            given = self.constant(f"{name}/axes", np.array(axes, np.int64))
            return self.add(op, (value, given), name, keepdims=keepdims)
        return self.add(op, (value,), name, axes=axes, keepdims=keepdims)

    def scalar(self, name: str) -> Array:
        """The value of a constant with one element, which may be a vector."""
        return self.model.constants[name].array.reshape(())


def write_softmax(form: FormWriter, node: OnnxNode) -> None:
    """Write the operations of a Softmax over more than two channels, in QDQ form or as a QLinearSoftmax."""
    if node.op == "QLinearSoftmax":
        _write_exponentials(form, node, node.inputs[:3], node.inputs[3:5], node.outputs[0])
        return
    (quantize,) = form.model.users(node.outputs[0])
    stored, result = f"{node.name}/byte", quantize.inputs[1:]
    _write_exponentials(form, node, form.model.producers[node.input(0)].inputs, result, stored)
    form.nodes.append(
        OnnxNode(f"{node.name}/result", DEQUANTIZE, (stored, *result), node.outputs, {}, origin=node.origin)
    )


def _write_exponentials(
    form: FormWriter, node: OnnxNode, operand: tuple[str, ...], result: tuple[str, ...], byte: str
) -> None:
    """Write the value `byte`: quotients of exponentials, rounded.

    `operand` is a stored value with its scale, and `result` are scale and zero point; both may have a zero point.
    """
    model, name, axis = form.model, node.name, softmax_axis(form.model, node)
    x = read_qparams(model, OnnxNode(f"{name}/operand", DEQUANTIZE, operand, (f"{name}/value",), {}))
    y = read_qparams(model, OnnxNode(f"{name}/rounded", QUANTIZE, (f"{name}/value", *result), (byte,), {}))
    table = exponentials(float(x.scale), (model.shape(node.input(0)) or ())[axis])
    full = full_result(float(y.scale))
    low, high = INTEGER_RANGES[y.dtype]
    numbers = {"first": TABLE_BYTES - 1, "full": full, "two": 2, "zero": int(y.zero_point), "high": high}
    at = {k: form.constant(f"{name}/{k}", np.array(v, np.int64)) for k, v in numbers.items()}
    at["table"] = form.constant(f"{name}/table", np.array(table, np.int64))
    stored = form.add("Cast", (operand[0],), f"{name}/stored", to=TensorProto.INT64)
    distance = form.add("Sub", (stored, form.reduced("ReduceMax", stored, (axis,))), f"{name}/distance")
    index = form.add("Add", (distance, at["first"]), f"{name}/index")
    terms = form.add("Gather", (at["table"], index), f"{name}/terms", axis=0)
    total = form.reduced("ReduceSum", terms, (axis,))
    half = form.add("Div", (total, at["two"]), f"{name}/half")
    scaled = form.add("Mul", (terms, at["full"]), f"{name}/scaled")
    quotient = form.add("Div", (form.add("Add", (scaled, half), f"{name}/dividend"), total), f"{name}/quotient")
    moved = form.add("Add", (quotient, at["zero"]), f"{name}/moved")
    kind = TensorProto.UINT8 if low == 0 else TensorProto.INT8
    least = form.add("Min", (moved, at["high"]), f"{name}/least")
    form.nodes.append(OnnxNode(f"{byte}/Cast", "Cast", (least,), (byte,), {"to": kind}, origin=node.origin))


def write_norm(form: FormWriter, unit: QuantizationUnit, norm: Normalization) -> None:
    """Write the operations of a normalization in place of its unit's last operator."""
    model, node = form.model, unit.operator
    source, result = model.producers[norm.value], unit.quantize.inputs[1:3]
    x, y = read_qparams(model, source), read_qparams(model, unit.quantize)
    shape = model.shape(norm.value) or ()
    axis = norm_axis(norm, shape)
    definition = Norm(name=node.name, inputs=(), output="", **norm_fields(norm, shape, axis, x, y))
    number = count()

    def constant(array: Array) -> str:
        return form.constant(f"{node.name}/constant{next(number)}", array)

    def op(op: str, inputs: tuple[str, ...], **attributes: int) -> str:
        return form.add(op, inputs, f"{node.name}/value{next(number)}", **attributes)

    integers = IntegerForm(op, constant, lambda value: form.reduced("ReduceSum", value, (axis,)))
    stored = op("Cast", (source.inputs[0],), to=TensorProto.INT64)
    deviations = op("Sub", (stored, constant(np.array(int(x.zero_point), np.int64))))
    lifted = integers.results(deviations, definition, axis, len(shape), int(y.zero_point) - y.zero_int8)
    byte = op("Cast", (lifted,), to=TensorProto.UINT8 if y.unsigned else TensorProto.INT8)
    back = OnnxNode(f"{node.name}/result", DEQUANTIZE, (byte, *result), node.outputs[:1], {}, origin=node.origin)
    form.nodes.append(back)


def write_average(form: FormWriter, node: OnnxNode, unit: QuantizationUnit | None) -> None:
    """Write the operations of an average; `unit` is that of a node in QDQ form."""
    if unit is None:
        operand, result = node.inputs[:3], node.inputs[3:5]
        _write_rounded(form, node, _window_sums(form, node, operand), (operand[1], *result), node.outputs[0])
        return
    if node.op == "GlobalAveragePool" and not unit.clamps:
        form.nodes.append(node)  # onnxruntime has an integer kernel
        return
    operand, result = form.model.producers[node.input(0)].inputs, unit.quantize.inputs[1:3]
    sums = _window_sums if node.op == "AveragePool" else _whole_sums
    stored = f"{node.outputs[0]}/byte"
    _write_rounded(form, node, sums(form, node, operand), (operand[1], *result), stored)
    form.nodes.append(OnnxNode(f"{stored}/back", DEQUANTIZE, (stored, *result), node.outputs, {}, unit.quantize.domain))


def _write_rounded(
    form: FormWriter, node: OnnxNode, sums: tuple[str, Counts], parameters: tuple[str, ...], byte: str
) -> None:
    """Write the value `byte`: each sum times its factor, rounded.

    `parameters` are the input's scale, and scale and zero point of the result.
    """
    name, (total, counts) = node.name, sums
    x_scale, scale = (float(form.scalar(v)) for v in parameters[:2])
    factors = [average_factor(x_scale, scale, int(n)) for n in counts.ravel()]
    factor = form.constant(f"{name}/factors", np.array(factors, np.float32).reshape(counts.shape))
    floats = form.add("Cast", (total,), f"{name}/floats", to=TensorProto.FLOAT)
    scaled = form.add("Mul", (floats, factor), f"{name}/scaled")
    one = form.constant(f"{name}/one", np.array(1, np.float32))
    zero = form.constant(f"{name}/zero", form.scalar(parameters[2]))
    form.nodes.append(OnnxNode(f"{name}/rounded", QUANTIZE, (scaled, one, zero), (byte,)))


def _whole_sums(form: FormWriter, node: OnnxNode, operand: tuple[str, ...]) -> tuple[str, Counts]:
    """Write the sums over whole axes of an operand (stored value, scale, zero point); also gives their numbers."""
    name, shape = node.name, form.model.shape(operand[0]) or ()
    axes = reduced_axes(form.model, node, len(shape))
    zero = form.constant(f"{name}/zero_in", np.array(form.scalar(operand[2]), np.int32))
    stored = form.add("Cast", (operand[0],), f"{name}/stored", to=TensorProto.INT32)
    centered = form.add("Sub", (stored, zero), f"{name}/centered")
    total = form.reduced("ReduceSum", centered, axes, keepdims=node.integer("keepdims", 1))
    return total, np.array(prod(shape[a] for a in axes))


def _window_sums(form: FormWriter, node: OnnxNode, operand: tuple[str, ...]) -> tuple[str, Counts]:
    """Write the sums of windows, as a convolution with weights of 1; also gives the pixels of each."""
    name, shape = node.name, form.model.shape(operand[0]) or ()
    image, rank = Tensor(operand[0], as_image(shape), 1.0, 0, True), len(shape) - 2
    window = read_window(node, image)
    ones = form.constant(f"{name}/ones", np.ones((shape[1], 1, *window.kernel[2 - rank :]), np.uint8))
    zero = form.constant(f"{name}/zero_in", form.scalar(operand[2]))
    pads = (*window.pads[2 - rank : 2], *window.pads[4 - rank :])
    strides = window.strides[2 - rank :]
    made = form.add("ConvInteger", (operand[0], ones, zero), f"{name}/sums", group=shape[1], strides=strides, pads=pads)
    rows, columns = (_counts(window, node, axis, (image.height, image.width)) for axis in (0, 1))
    counts = np.outer(rows, columns)
    return made, counts if rank == 2 else counts[0]


def _counts(window: Window, node: OnnxNode, axis: int, size: tuple[int, int]) -> list[int]:
    """Pixels of each window along an axis: those inside the image, or all of them with `count_include_pad`."""
    kernel, stride, pad = window.kernel[axis], window.strides[axis], window.pads[axis]
    starts = range(-pad, window.output(size)[axis] * stride - pad, stride)
    if node.integer("count_include_pad", 0):
        return [kernel] * len(starts)
    return [min(size[axis], at + kernel) - max(0, at) for at in starts]
