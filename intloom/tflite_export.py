"""int8 TFLite files from models that `intloom quantize` wrote, for comparisons that anyone can repeat.

Images have their channels last. A file is int8 throughout, so float operators at the end of a model are left out, and
what they read becomes outputs. Results that TFLite defines with a scale of their own (LOGISTIC, SOFTMAX, and all that
only moves values) have that scale instead of the model's.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from intloom.common.errors import UnsupportedError
from intloom.compiler.importer.tflite.file import TfliteOperator, TfliteTensor, schema
from intloom.compiler.importer.tflite.writer import write_tflite

Qparams = tuple[float, int]
Array = NDArray[Any]
_UNIT: Qparams = (1 / 256, -128)
_VALID, _SAME = 1, 0
_RELU6 = 3
_CHANNELS_LAST = (0, 2, 3, 1)
_CHANNELS_FIRST = (0, 3, 1, 2)
_VERSIONS = {
    **dict.fromkeys(("QUANTIZE", "RESHAPE", "HARD_SWISH"), 1),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"), 3),
    "FULLY_CONNECTED": 4,
}
"""Versions of the operators' int8 forms, where that is not the second."""


def _last(values: Sequence[int]) -> list[int]:
    """Values for the axes of an image, with the channels last; those of other tensors keep their order."""
    return [values[k] for k in _CHANNELS_LAST] if len(values) == 4 else list(values)


def _axis(axis: int, rank: int) -> int:
    return _CHANNELS_LAST.index(axis % rank) if rank == 4 else axis % rank


def _options(name: str, **values: Any) -> Any:
    made = getattr(schema(), f"{name}OptionsT")()
    for key, value in values.items():
        setattr(made, key, value)
    return made


class _Exporter:
    """A file under construction: tensors and operators so far, and what is known of the model's values."""

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = onnx.shape_inference.infer_shapes(model).graph
        self.graph = graph
        values = (*graph.input, *graph.value_info, *graph.output)
        self.shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}
        self.constants: dict[str, Array] = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        self.stored: dict[str, tuple[Array, Array]] = {}
        """Constants that are dequantized: values without their zero points, and scales."""
        self.quantized = {n.input[0]: self._params(n) for n in graph.node if n.op_type == "QuantizeLinear"}
        self.tensors: list[TfliteTensor] = []
        self.operators: list[TfliteOperator] = []
        self.inputs: list[int] = []
        self.values: dict[str, int] = {}

    def _params(self, node: onnx.NodeProto) -> Qparams:
        zero_point = self.constants[node.input[2]]
        return float(self.constants[node.input[1]]), int(zero_point) - 128 * (zero_point.dtype == np.uint8)

    def tensor(
        self,
        shape: Sequence[int],
        params: Qparams | None,
        data: Array | None = None,
        scales: Sequence[float] = (),
        axis: int = 0,
    ) -> int:
        """A new tensor with these parameters or, along an axis, these scales; a constant has the type of its data."""
        every = tuple(scales) or ((params[0],) if params else ())
        zeros = (params[1],) if params and not scales else (0,) * len(every)
        dtype = "INT8" if data is None else data.dtype.name.upper()
        name = f"t{len(self.tensors)}"
        self.tensors.append(TfliteTensor(name, tuple(shape), dtype, every, zeros, axis, data))
        return len(self.tensors) - 1

    def integers(self, values: Any) -> int:
        """A constant of int32 without a scale."""
        data = np.array(values, np.int32)
        return self.tensor(data.shape, None, data)

    def params(self, index: int) -> Qparams:
        """Scale and zero point of a tensor."""
        tensor = self.tensors[index]
        return tensor.scales[0], tensor.zero_points[0]

    def add(self, code: str, inputs: Sequence[int], shape: Sequence[int], params: Qparams, options: Any = None) -> int:
        """A new operator; its result."""
        result = self.tensor(shape, params)
        version = _VERSIONS.get(code, 2)
        self.operators.append(TfliteOperator(len(self.operators), code, version, tuple(inputs), (result,), options))
        return result

    def moved(self, code: str, inputs: Sequence[int], shape: Sequence[int], options: Any = None) -> int:
        """An operator whose result has the parameters of its first input."""
        return self.add(code, inputs, shape, self.params(inputs[0]), options)

    def requantized(self, index: int, params: Qparams) -> int:
        """The tensor with these parameters."""
        if self.params(index) == params:
            return index
        return self.add("QUANTIZE", [index], self.tensors[index].shape, params, _options("Quantize"))

    def value(self, name: str) -> int:
        """The tensor of a value of the model; of a constant operand one with the widest range of int8."""
        if name in self.values:
            return self.values[name]
        data = np.atleast_1d(self.constants[name] if name in self.constants else self._dequantized(name)).astype(float)
        if data.ndim == 4:
            data = data.transpose(_CHANNELS_LAST)
        scale = max(float(np.abs(data).max()), 1e-6) / 127
        stored = np.rint(data / scale).astype(np.int8)
        return self.tensor(stored.shape, (scale, 0), stored)

    def _dequantized(self, name: str) -> Array:
        stored, scales = self.stored[name]
        return stored * scales

    def run(self) -> bytes:
        """The file."""
        for value in self.graph.input:
            if value.name in self.quantized:
                self.inputs.append(self.tensor(_last(self.shapes[value.name]), self.quantized[value.name]))
                self.values[value.name] = self.inputs[-1]
        left_out = [node for node in self.graph.node if not self._convert(node)]
        outputs = [v.name for v in self.graph.output] + [name for node in left_out for name in node.input]
        found = dict.fromkeys(self.values[name] for name in outputs if name in self.values)
        if not self.operators or not found:
            raise UnsupportedError(
                "the model must be in the form that `intloom quantize --form qdq` writes: it has no quantized operator"
            )
        return write_tflite(self.tensors, self.operators, self.inputs, list(found))

    def _convert(self, node: onnx.NodeProto) -> bool:
        """Convert a node, unless it is float."""
        first, result = node.input[0], node.output[0]
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            if first in self.constants:
                self.stored[result] = self._constant(node)
            elif first in self.values:
                self.values[result] = self.values[first]
            return True
        if first not in self.values and (len(node.input) < 2 or node.input[1] not in self.values):
            return False
        if result not in self.quantized and node.op_type not in _MOVES:
            return False
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        convert = _CONVERT.get(node.op_type)
        if convert is None:
            raise UnsupportedError(f"node {node.name!r} must be of {', '.join(sorted(_CONVERT))}, not {node.op_type}")
        made = convert(self, node, attributes)
        for name, index in zip(node.output, made if isinstance(made, list) else [made], strict=True):
            self.values[name] = index
        return True

    def _constant(self, node: onnx.NodeProto) -> tuple[Array, Array]:
        stored, scale = self.constants[node.input[0]].astype(np.int32), self.constants[node.input[1]]
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        shape = [-1 if k == axis % stored.ndim else 1 for k in range(stored.ndim)] if scale.ndim else []
        if len(node.input) > 2:
            stored = stored - self.constants[node.input[2]].astype(np.int32).reshape(shape)
        return stored, scale.reshape(shape).astype(np.float64)

    def weights(self, name: str, order: Sequence[int], axis: int) -> tuple[int, Array]:
        """A constant of weights in another order, its channels along `axis`; and the scale of each channel."""
        stored, scales = self.stored[name]
        if stored.min() < -128 or stored.max() > 127:
            raise UnsupportedError(f"weights {name!r} must be int8 with zero points of 0")
        data = np.ascontiguousarray(stored.transpose(order), np.int8)
        flat = scales.ravel()
        many = tuple(map(float, flat)) if flat.size > 1 else ()
        return self.tensor(data.shape, (float(flat[0]), 0), data, many, axis), flat

    def bias(self, node: onnx.NodeProto, x: int, scales: Array, channels: int) -> int:
        """The constant of a node's biases, with the scale of its sums."""
        sums = self.params(x)[0] * np.broadcast_to(scales, channels)
        values = np.zeros(channels)
        if len(node.input) > 2 and node.input[2]:
            name = node.input[2]
            values = self.constants[name] if name in self.constants else self._dequantized(name).ravel()
        data = np.rint(values / sums).astype(np.int32)
        many = tuple(map(float, sums)) if scales.size > 1 else ()
        return self.tensor(data.shape, (float(sums[0]), 0), data, many)

    def padded(self, x: int, kernel: Sequence[int], a: dict[str, Any], fill: int | None = None) -> tuple[int, int]:
        """The operand of a window with its padding, and the padding that is left to the operator."""
        pads, strides = a.get("pads", [0] * 4), a.get("strides", [1, 1])
        same = [(k - 1) * d for k, d in zip(kernel, a.get("dilations", [1, 1]), strict=True)]
        if not any(pads):
            return x, _VALID
        whole = [pads[0] + pads[2], pads[1] + pads[3]]
        if list(strides) == [1, 1] and whole == same and all(pads[k] == whole[k] // 2 for k in (0, 1)):
            return x, _SAME
        amounts = [[0, 0], [pads[0], pads[2]], [pads[1], pads[3]], [0, 0]]
        shape = [n + sum(p) for n, p in zip(self.tensors[x].shape, amounts, strict=True)]
        inputs = [x, self.integers(amounts)]
        if fill is None:
            return self.moved("PAD", inputs, shape, _options("Pad")), _VALID
        value = self.tensor((1,), self.params(x), np.array([fill], np.int8))
        return self.moved("PADV2", [*inputs, value], shape, _options("PadV2")), _VALID


def _conv(e: _Exporter, node: onnx.NodeProto, a: dict[str, Any]) -> int:
    x, result = e.value(node.input[0]), node.output[0]
    channels, inside, *kernel = e.stored[node.input[1]][0].shape
    depthwise = a.get("group", 1) > 1
    if depthwise and (inside > 1 or a["group"] != e.tensors[x].shape[3]):
        raise UnsupportedError(f"convolution {node.name!r} must be depthwise or have one group, not {a['group']}")
    x, padding = e.padded(x, kernel, a)
    strides, dilations = a.get("strides", [1, 1]), a.get("dilations", [1, 1])
    made = {"padding": padding, "strideH": strides[0], "strideW": strides[1]}
    made |= {"dilationHFactor": dilations[0], "dilationWFactor": dilations[1]}
    if depthwise:
        weights, scales = e.weights(node.input[1], (1, 2, 3, 0), 3)
        options = _options("DepthwiseConv2D", depthMultiplier=channels // a["group"], **made)
    else:
        weights, scales = e.weights(node.input[1], (0, 2, 3, 1), 0)
        options = _options("Conv2D", **made)
    inputs = [x, weights, e.bias(node, x, scales, channels)]
    return e.add(
        "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", inputs, _last(e.shapes[result]), e.quantized[result], options
    )


def _transposed_conv(e: _Exporter, node: onnx.NodeProto, a: dict[str, Any]) -> int:
    x, shape = e.value(node.input[0]), _last(e.shapes[node.output[0]])
    if any(a.get("pads", [])) or a.get("group", 1) > 1:
        raise UnsupportedError(f"transposed convolution {node.name!r} must have one group and no padding")
    weights, scales = e.weights(node.input[1], (1, 2, 3, 0), 0)
    options = _options("TransposeConv", padding=_VALID, strideH=a["strides"][0], strideW=a["strides"][1])
    inputs = [e.integers(shape), weights, x, e.bias(node, x, scales, shape[3])]
    return e.add("TRANSPOSE_CONV", inputs, shape, e.quantized[node.output[0]], options)


def _gemm(e: _Exporter, node: onnx.NodeProto, a: dict[str, Any]) -> int:
    x = e.value(node.input[0])
    weights, scales = e.weights(node.input[1], (0, 1) if a.get("transB") else (1, 0), 0)
    shape = e.shapes[node.output[0]]
    inputs = [x, weights, e.bias(node, x, scales, shape[1])]
    return e.add("FULLY_CONNECTED", inputs, shape, e.quantized[node.output[0]], _options("FullyConnected"))


def _binary(code: str, name: str) -> Callable[[_Exporter, onnx.NodeProto, dict[str, Any]], int]:
    def convert(e: _Exporter, node: onnx.NodeProto, _: dict[str, Any]) -> int:
        operands = [e.value(operand) for operand in node.input]
        return e.add(code, operands, _last(e.shapes[node.output[0]]), e.quantized[node.output[0]], _options(name))

    return convert


def _hard_swish(e: _Exporter, node: onnx.NodeProto, _: dict[str, Any]) -> int:
    x = e.value(node.input[0])
    return e.add("HARD_SWISH", [x], e.tensors[x].shape, e.quantized[node.output[0]])


def _hard_sigmoid(e: _Exporter, node: onnx.NodeProto, a: dict[str, Any]) -> int:
    """`min(max(x + 3, 0), 6) / 6`, as converters write it: TFLite has no operator for it."""
    x = e.value(node.input[0])
    if abs(6 * a.get("alpha", 0.2) - 1) > 1e-6 or a.get("beta", 0.5) != 0.5:
        raise UnsupportedError(f"HardSigmoid {node.name!r} must have alpha 1/6 and beta 1/2")
    three, sixth = (e.tensor((1,), (v / 127, 0), np.array([127], np.int8)) for v in (3.0, 1 / 6))
    shape, relu6 = e.tensors[x].shape, _options("Add", fusedActivationFunction=_RELU6)
    y = e.add("ADD", [x, three], shape, (6 / 255, -128), relu6)
    return e.add("MUL", [y, sixth], shape, e.quantized[node.output[0]], _options("Mul"))


def _sigmoid(e: _Exporter, node: onnx.NodeProto, _: dict[str, Any]) -> int:
    x = e.value(node.input[0])
    return e.add("LOGISTIC", [x], e.tensors[x].shape, _UNIT)


def _softmax(e: _Exporter, node: onnx.NodeProto, a: dict[str, Any]) -> int:
    x = e.value(node.input[0])
    rank = len(e.tensors[x].shape)
    image = rank == 4 and a.get("axis", -1) % rank == 1
    x = x if image else _plain(e, node.input[0])
    if not image and a.get("axis", -1) % rank != rank - 1:
        raise UnsupportedError(f"Softmax {node.name!r} must be over channels or over the last dimension")
    result = e.add("SOFTMAX", [x], e.tensors[x].shape, _UNIT, _options("Softmax", beta=1.0))
    return result if image or rank != 4 else _permuted(e, result, _CHANNELS_LAST)


def _max_pool(e: _Exporter, node: onnx.NodeProto, a: dict[str, Any]) -> int:
    kernel, strides = a["kernel_shape"], a.get("strides", [1, 1])
    x, padding = e.padded(e.value(node.input[0]), kernel, a, -128)
    made = {"padding": padding, "strideH": strides[0], "strideW": strides[1]}
    options = _options("Pool2D", filterHeight=kernel[0], filterWidth=kernel[1], **made)
    return e.moved("MAX_POOL_2D", [x], _last(e.shapes[node.output[0]]), options)


def _mean(e: _Exporter, node: onnx.NodeProto, _: dict[str, Any]) -> int:
    inputs, result = [e.value(node.input[0]), e.integers([1, 2])], node.output[0]
    return e.add("MEAN", inputs, _last(e.shapes[result]), e.quantized[result], _options("Reducer", keepDims=True))


def _concat(e: _Exporter, node: onnx.NodeProto, a: dict[str, Any]) -> int:
    shape = _last(e.shapes[node.output[0]])
    parts = [e.value(name) for name in node.input]
    params = e.quantized.get(node.output[0], e.params(parts[0]))
    options = _options("Concatenation", axis=_axis(a["axis"], len(shape)))
    return e.add("CONCATENATION", [e.requantized(part, params) for part in parts], shape, params, options)


def _parts(e: _Exporter, node: onnx.NodeProto, a: dict[str, Any]) -> list[int]:
    x = e.value(node.input[0])
    found, at = [], 0
    axis = _axis(a.get("axis", 0), len(e.tensors[x].shape))
    for name in node.output:
        shape = _last(e.shapes[name])
        begin = [at if k == axis else 0 for k in range(len(shape))]
        found.append(e.moved("SLICE", [x, e.integers(begin), e.integers(shape)], shape, _options("Slice")))
        at += shape[axis]
    return found


def _slice(e: _Exporter, node: onnx.NodeProto, _: dict[str, Any]) -> int:
    x, shape = e.value(node.input[0]), _last(e.shapes[node.output[0]])
    starts, _ends, axes, *steps = ([int(v) for v in e.constants[name]] for name in node.input[1:])
    begin, step = [0] * len(shape), [1] * len(shape)
    for k, axis in enumerate(axes):
        at = _axis(axis, len(shape))
        begin[at], step[at] = starts[k] % e.tensors[x].shape[at], steps[0][k] if steps else 1
    end = [b + s * n for b, s, n in zip(begin, step, shape, strict=True)]
    inputs = [x, *(e.integers(v) for v in (begin, end, step))]
    return e.moved("STRIDED_SLICE", inputs, shape, _options("StridedSlice"))


def _permuted(e: _Exporter, x: int, order: Sequence[int]) -> int:
    """A tensor of four dimensions in another order of them."""
    shape = [e.tensors[x].shape[k] for k in order]
    return e.moved("TRANSPOSE", [x, e.integers(order)], shape, _options("Transpose"))


def _plain(e: _Exporter, name: str) -> int:
    """A value with its dimensions in the model's order."""
    x = e.value(name)
    return _permuted(e, x, _CHANNELS_FIRST) if len(e.tensors[x].shape) == 4 else x


def _reshape(e: _Exporter, node: onnx.NodeProto, _: dict[str, Any]) -> int:
    x, shape = _plain(e, node.input[0]), e.shapes[node.output[0]]
    x = e.moved("RESHAPE", [x, e.integers(shape)], shape, _options("Reshape", newShape=list(shape)))
    return _permuted(e, x, _CHANNELS_LAST) if len(shape) == 4 else x


def _transpose(e: _Exporter, node: onnx.NodeProto, a: dict[str, Any]) -> int:
    x, order = e.value(node.input[0]), a["perm"]
    return _permuted(e, x, [_axis(k, len(order)) for k in _last(order)])


def _matmul(e: _Exporter, node: onnx.NodeProto, _: dict[str, Any]) -> int:
    if node.input[1] in e.stored:
        raise UnsupportedError(f"node {node.name!r} must multiply two tensors: write a product with weights as Gemm")
    operands, shape = [_plain(e, name) for name in node.input], e.shapes[node.output[0]]
    x = e.add("BATCH_MATMUL", operands, shape, e.quantized[node.output[0]], _options("BatchMatMul"))
    return _permuted(e, x, _CHANNELS_LAST) if len(shape) == 4 else x


def _resize(e: _Exporter, node: onnx.NodeProto, a: dict[str, Any]) -> int:
    x, shape = e.value(node.input[0]), _last(e.shapes[node.output[0]])
    if a.get("mode", b"nearest") != b"nearest":
        raise UnsupportedError(f"node {node.name!r} must resize by the nearest pixel")
    inputs = [x, e.integers(shape[1:3])]
    return e.moved("RESIZE_NEAREST_NEIGHBOR", inputs, shape, _options("ResizeNearestNeighbor"))


_CONVERT: dict[str, Callable[[_Exporter, onnx.NodeProto, dict[str, Any]], int | list[int]]] = {
    "Conv": _conv,
    "ConvTranspose": _transposed_conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Add": _binary("ADD", "Add"),
    "Sub": _binary("SUB", "Sub"),
    "Mul": _binary("MUL", "Mul"),
    "HardSwish": _hard_swish,
    "HardSigmoid": _hard_sigmoid,
    "Sigmoid": _sigmoid,
    "Softmax": _softmax,
    "MaxPool": _max_pool,
    "GlobalAveragePool": _mean,
    "Concat": _concat,
    "Split": _parts,
    "Slice": _slice,
    "Reshape": _reshape,
    "Flatten": _reshape,
    "Transpose": _transpose,
    "Resize": _resize,
}
_MOVES = ("MaxPool", "Split", "Slice", "Reshape", "Flatten", "Transpose", "Resize")
"""Operators whose results have their operand's scale, so that no QuantizeLinear needs to follow."""


def to_tflite(model: onnx.ModelProto) -> bytes:
    """An int8 TFLite file of a quantized model in the form `qdq`.

    Raises
    ------
    UnsupportedError
        An operator has no form here, or the model is not quantized.
    """
    return _Exporter(model).run()
