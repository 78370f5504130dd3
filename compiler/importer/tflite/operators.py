"""The operators of TFLite that have a form in the model."""

from copy import copy
from dataclasses import replace
from math import prod

import numpy as np

from intloom.compiler.importer.interpolation import linear_axis
from intloom.compiler.importer.model import Attribute, OnnxNode, ValueType
from intloom.compiler.importer.tflite.converter import Converter, Unit, converts
from intloom.compiler.importer.tflite.file import TfliteOperator, TfliteTensor
from intloom.compiler.importer.tflite.view import CHANNELS_FIRST, Order, View, identity, inverse, permuted
from intloom.compiler.refusals import Refusal

_PADDINGS = ("SAME_UPPER", "VALID")
"""ONNX's names for the values of the enumeration Padding."""
_ACTIVATIONS = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""Bounds of the fused activations RELU, RELU_N1_TO_1 and RELU6."""


_LEAST = np.finfo(np.float32).tiny
"""The least normal number."""


def _bounds(c: Converter, op: TfliteOperator) -> tuple[int, int] | None:
    """Smallest and largest stored result that a fused activation lets through; None without one."""
    kind = op.option("fusedActivationFunction", 0)
    if not kind:
        return None
    if kind not in _ACTIVATIONS:
        raise Refusal.OPERATOR(f"it has the fused activation {kind}", "use none, RELU, RELU_N1_TO_1 or RELU6")
    return stored_bounds(c.tensor(op.outputs[0]), *_ACTIVATIONS[kind])


def stored_bounds(tensor: TfliteTensor, low: float | None, high: float | None) -> tuple[int, int]:
    """The stored values that represent two real bounds."""
    least, greatest = (-128, 127) if tensor.dtype == "INT8" else (0, 255)

    def stored(value: float) -> int:
        with np.errstate(over="ignore"):
            steps = np.float32(value) / np.float32(tensor.scales[0])
        return tensor.zero_points[0] + round(float(np.clip(steps, -1e9, 1e9)))

    return (
        least if low is None else max(least, stored(low)),
        greatest if high is None else min(greatest, stored(high)),
    )


def _weights(c: Converter, index: int, order: Order, name: str) -> str:
    """Constant weights in another order of dimensions, dequantized with their scales."""
    tensor = c.tensor(index)
    assert tensor.data is not None
    if min(tensor.scales, default=0) < _LEAST:
        raise Refusal.WEIGHTS("it has weights without a normal scale", "convert again")
    stored = c.constant(f"{name}/weights", np.ascontiguousarray(tensor.data.transpose(order)), c.onnx_type(tensor))
    return c.dequantized(stored, tensor, axis=order.index(tensor.axis) if len(tensor.scales) > 1 else None)


def _bias(c: Converter, op: TfliteOperator, position: int, name: str) -> tuple[str, ...]:
    """The int32 bias, whose scales are those of the sums."""
    index = op.inputs[position] if position < len(op.inputs) else -1
    if index < 0:
        return ()
    tensor = c.tensor(index)
    if tensor.data is None or tensor.dtype != "INT32":
        raise Refusal.BIAS(f"it has a bias of type {tensor.dtype.lower()}", "convert to int8 with int32 biases")
    if min(tensor.scales, default=0) < _LEAST:
        # LiteRT then has no kernel of XNNPACK, and its own rounds twice.
        raise Refusal.BIAS("it has a bias without a normal scale", "convert again, so that biases have scales")
    x, w = c.tensor(op.inputs[0]), c.tensor(op.inputs[1])
    if op.code == "TRANSPOSE_CONV":
        x = c.tensor(op.inputs[2])
    scales = np.float32(x.scales[0]) * np.array(w.scales, np.float32)
    scale = c.constant(f"{name}/bias_scale", scales.astype(np.float32) if scales.size > 1 else scales.reshape(()))
    stored = c.constant(f"{name}/bias_stored", tensor.data.ravel())
    return (c.dequantize(stored, scale, f"{name}/bias"),)


@converts("CONV_2D", "DEPTHWISE_CONV_2D", stored=(0,))
def convert_convolution(c: Converter, op: TfliteOperator) -> None:
    """A convolution; the multiplier of a depthwise one is in the number of its filters."""
    x, w, name = c.tensor(op.inputs[0]), c.tensor(op.inputs[1]), c.name(op)
    if w.data is None or len(w.shape) != 4 or len(x.shape) != 4:
        raise Refusal.WEIGHTS("it computes its weights", "use constant weights")
    depthwise = op.code == "DEPTHWISE_CONV_2D"
    if depthwise and op.option("depthMultiplier", 1) * x.shape[3] != w.shape[3]:
        # LiteRT then has no kernel of XNNPACK.
        raise Refusal.INVALID("its depth multiplier is not that of its weights", "convert again")
    weights = _weights(c, op.inputs[1], (3, 0, 1, 2) if depthwise else (0, 3, 1, 2), name)
    group = x.shape[3] if depthwise else x.shape[3] // max(1, w.shape[3])
    kernel, dilations = (w.shape[1], w.shape[2]), (op.option("dilationHFactor", 1), op.option("dilationWFactor", 1))
    strides = (op.option("strideH", 1), op.option("strideW", 1))
    pads = _PADDINGS[op.option("padding", 0)]
    value = c.operand(op.inputs[0], CHANNELS_FIRST)
    c.finish(
        op,
        Unit(
            "Conv",
            (value, weights, *_bias(c, op, 2, name)),
            {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "auto_pad": pads, "group": group},
            bounds=_bounds(c, op),
        ),
        CHANNELS_FIRST,
    )


@converts("TRANSPOSE_CONV", stored=(2,))
def convert_transpose_conv(c: Converter, op: TfliteOperator) -> None:
    """A transposed convolution; the file states the size of its result, from which the padding follows."""
    size, (_, weights_at, x_at) = c.integers(op, 0), op.inputs[:3]
    x, w, name = c.tensor(x_at), c.tensor(weights_at), c.name(op)
    weights = _weights(c, weights_at, (3, 0, 1, 2), name)
    kernel, strides = (w.shape[1], w.shape[2]), (op.option("strideH", 1), op.option("strideW", 1))
    # Without padding, windows end inside of the result.
    missing = [(k - 1) * op.option("padding", 0) for k in kernel]
    fitting = [-(-(n - m) // s) for n, m, s in zip(size[1:3], missing, strides, strict=True)]
    if (*fitting,) != x.shape[1:3]:
        raise ValueError(f"a result of {size} needs {fitting} pixels, not {x.shape[1:3]}")
    spare = [(x.shape[1 + a] - 1) * strides[a] + kernel[a] - size[1 + a] for a in (0, 1)]
    begin = [max(0, s) // 2 for s in spare]
    end = [max(0, s) - b for s, b in zip(spare, begin, strict=True)]
    value = c.operand(x_at, CHANNELS_FIRST)
    c.finish(
        op,
        Unit(
            "ConvTranspose",
            (value, weights, *_bias(c, op, 3, name)),
            {
                "kernel_shape": kernel,
                "strides": strides,
                "pads": (*begin, *end),
                "output_padding": tuple(max(0, -s) for s in spare),
            },
            bounds=_bounds(c, op),
        ),
        CHANNELS_FIRST,
    )


@converts("FULLY_CONNECTED", stored=(0,))
def convert_fully_connected(c: Converter, op: TfliteOperator) -> None:
    """One row is a Gemm; several rows with constant weights are pixels, or rows, of an image; else a product."""
    x_at, w_at = op.inputs[:2]
    x, w, name = c.tensor(x_at), c.tensor(w_at), c.name(op)
    if op.option("weightsFormat", 0):
        raise Refusal.WEIGHTS("it has shuffled weights", "convert again without them")
    depth = w.shape[-1]
    rows = prod(x.shape) // max(1, depth)
    bounds = _bounds(c, op)
    if w.data is None:
        a, b = c.operand(x_at, (0, 1), (rows, depth)), c.operand(w_at, (1, 0))
        c.finish(op, Unit("MatMul", (a, b), bounds=bounds, shape=(rows, w.shape[0])), (0, 1))
    elif rows == 1:
        inputs = (c.operand(x_at, (0, 1), (1, depth)), _weights(c, w_at, (0, 1), name), *_bias(c, op, 2, name))
        c.finish(op, Unit("Gemm", inputs, {"transB": 1}, bounds=bounds, shape=(1, w.shape[0])), (0, 1))
    else:
        # Rows that are an image's pixels, as of a Dense layer behind a convolution, stay an image.
        before = next((r.inputs[0] for r in c.file.operators if r.code == "RESHAPE" and x_at in r.outputs), x_at)
        shape = c.tensor(before).shape
        image = len(shape) == 4 and shape[0] == 1
        # Or they are its rows, as of a sequence behind convolutions.
        if not image or (depth != shape[3] and (depth != prod(shape[2:]) or len(x.shape) == 4)):
            before, shape = x_at, (1, rows, 1, depth)
        kernel = (1, depth // shape[3])
        filters = w.data.reshape(w.shape[0], *kernel, shape[3]).transpose(0, 3, 1, 2)
        stored = c.constant(f"{name}/weights", np.ascontiguousarray(filters), c.onnx_type(w))
        inputs = (c.operand(before, CHANNELS_FIRST, shape), c.dequantized(stored, w, axis=0), *_bias(c, op, 2, name))
        shape = (1, shape[1], shape[2] // kernel[1], w.shape[0])
        c.finish(op, Unit("Conv", inputs, {"kernel_shape": kernel}, bounds=bounds, shape=shape), CHANNELS_FIRST)


@converts("BATCH_MATMUL", stored=(0, 1))
def convert_batch_matmul(c: Converter, op: TfliteOperator) -> None:
    """A product of matrices, of which either may be transposed."""
    orders = []
    for index, option in zip(op.inputs[:2], ("adjX", "adjY"), strict=True):
        rank = len(c.tensor(index).shape)
        plain = identity(rank)
        orders.append((*plain[:-2], rank - 1, rank - 2) if op.option(option, 0) else plain)
    a, b = (c.operand(i, order) for i, order in zip(op.inputs[:2], orders, strict=True))
    c.finish(op, Unit("MatMul", (a, b)), identity(len(c.tensor(op.outputs[0]).shape)))


@converts("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", stored=(0, 1))
def convert_binary(c: Converter, op: TfliteOperator) -> None:
    """An elementwise operator of two operands, in the order that the first of them that is computed has."""
    x, y, result = (c.tensor(i) for i in (*op.inputs[:2], op.outputs[0]))
    onnx_op = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "MAXIMUM": "Max", "MINIMUM": "Min"}.get(op.code)
    if onnx_op is None:
        raise Refusal.OPERATOR("it has no integer form", "write it as SUB and MUL")
    if np.broadcast_shapes(x.shape, y.shape) != result.shape:
        raise ValueError(f"operands of shape {x.shape} and {y.shape} give no result of shape {result.shape}")
    rank = len(result.shape)
    wide = [(1,) * (rank - len(c.tensor(i).shape)) + c.tensor(i).shape for i in op.inputs[:2]]
    order = _common_order(c, op.inputs[:2], rank)
    values = tuple(
        c.operand(i, identity(0)) if not c.tensor(i).shape else c.operand(i, order, shape)
        for i, shape in zip(op.inputs[:2], wide, strict=True)
    )
    if op.code in ("MAXIMUM", "MINIMUM") and x.data is None and y.data is None:
        _finish_extreme(c, op, values, order)
        return
    bounds, exact = None if op.code in ("MAXIMUM", "MINIMUM") else _bounds(c, op), op
    differing = {
        i: {at for at, size in zip(order, shape, strict=True) if size > 1}
        for i, shape in zip(op.inputs[:2], wide, strict=True)
        if c.tensor(i).data is not None
    }
    # A constant for each channel is part of the function that LiteRT evaluates.
    images = tuple(i for i, axes in differing.items() if axes - {1})
    if bounds not in (None, stored_bounds(result, None, None)):
        # A clamp inside the range of the bytes is a table behind the operator.
        exact = replace(op, options=copy(op.options))
        exact.options.fusedActivationFunction = 0
        c.finish(op, Unit(onnx_op, values, exact=exact, images=images, bounds=bounds), order)
        return
    c.finish(op, Unit(onnx_op, values, exact=op, images=images), order)


def _finish_extreme(c: Converter, op: TfliteOperator, values: tuple[str, ...], order: Order) -> None:
    """The larger or smaller of two tensors of one scale: `b + max(a - b, 0)`, or `b - max(b - a, 0)`.

    The difference has the smallest byte as its zero point, so that all its positive values fit and others become 0.
    """
    x, y, result = (c.tensor(i) for i in (*op.inputs[:2], op.outputs[0]))
    if len({(t.scales, t.zero_points, t.shape) for t in (x, y, result)}) > 1:
        raise Refusal.BROADCAST("it has operands of different scales or shapes", "give both the scale of the result")
    a, b = values if op.code == "MAXIMUM" else values[::-1]
    excess = replace(result, name=f"{c.name(op)}/excess", zero_points=(stored_bounds(result, None, None)[0],))
    c.nodes.append(OnnxNode(f"{excess.name}/Sub", "Sub", (a, b), (f"{excess.name}/float",)))
    c.quantized(f"{excess.name}/float", excess.name, excess, permuted(result.shape, inverse(order)))
    inputs = values[1], c.dequantized(excess.name, excess)
    c.finish(op, Unit("Add" if op.code == "MAXIMUM" else "Sub", inputs), order)


def _common_order(c: Converter, indices: tuple[int, ...], rank: int) -> Order:
    """The order of the first computed operand of full rank that does not have the order of the file."""
    orders = [c.natural_order(i) for i in indices if c.tensor(i).data is None and len(c.tensor(i).shape) == rank]
    return next((o for o in orders if o != identity(rank)), identity(rank))


_UNARY = {
    "LOGISTIC": "Sigmoid",
    "TANH": "Tanh",
    "HARD_SWISH": "HardSwish",
    "LEAKY_RELU": "LeakyRelu",
    "ELU": "Elu",
    "ABS": "Abs",
    "NEG": "Neg",
    "GELU": "Gelu",
    "EXP": "Exp",
    "SQRT": "Sqrt",
    "RELU": "LeakyRelu",
}


@converts(*_UNARY, stored=(0,))
def convert_unary(c: Converter, op: TfliteOperator) -> None:
    """An elementwise operator of one operand: a function of its bytes."""
    attributes: dict[str, Attribute] = {}
    if op.code in ("LEAKY_RELU", "RELU"):
        attributes["alpha"] = 0.0 if op.code == "RELU" else float(op.options.alpha)
    order = c.natural_order(op.inputs[0])
    c.finish(op, Unit(_UNARY[op.code], (c.operand(op.inputs[0], order),), attributes, exact=op), order)


@converts("RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", stored=(0,))
def convert_clamp(c: Converter, op: TfliteOperator) -> None:
    """A clamp to two real numbers."""
    low, high = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}[op.code]
    order, result = c.natural_order(op.inputs[0]), c.tensor(op.outputs[0])
    limits = c.clip_bounds(result, stored_bounds(result, low, high), c.name(op))
    c.finish(op, Unit("Clip", (c.operand(op.inputs[0], order), *limits)), order)


@converts("PRELU", stored=(0,))
def convert_prelu(c: Converter, op: TfliteOperator) -> None:
    """A leaky rectifier with a slope for each channel."""
    x_at, slope_at = op.inputs[:2]
    order, rank = c.natural_order(x_at), len(c.tensor(x_at).shape)
    slope = c.tensor(slope_at)
    shape = (1,) * (rank - len(slope.shape)) + slope.shape
    c.finish(op, Unit("PRelu", (c.operand(x_at, order), c.operand(slope_at, order, shape)), exact=op), order)


@converts("QUANTIZE", floats=True)
def convert_quantize(c: Converter, op: TfliteOperator) -> None:
    """A float value becomes stored, or a stored value gets another scale."""
    # The host brings an input to the order of the operators that follow.
    x, result, order = c.tensor(op.inputs[0]), c.tensor(op.outputs[0]), c.natural_order(op.inputs[0])
    if not x.scales:
        readers = [r for r in c.file.operators if op.outputs[0] in r.inputs and r.code in ("EXPAND_DIMS", "RESHAPE")]
        images = [shape for r in readers if len(shape := c.tensor(r.outputs[0]).shape) == 4]
        if len(order) == 3 and any(shape[3] == x.shape[2] for shape in images):
            order = (0, 2, 1)
        stored = c.stored_name(op.outputs[0], order)
        c.quantized(c.in_order(op.inputs[0], order), stored, result, permuted(result.shape, inverse(order)))
        c.views[op.outputs[0]] = View(stored, order)
        return
    c.finish(op, Unit("Identity", (c.operand(op.inputs[0], order),), exact=op), order)


@converts("DEQUANTIZE")
def convert_dequantize(c: Converter, op: TfliteOperator) -> None:
    """A stored value becomes float."""
    x, order, result = c.tensor(op.inputs[0]), c.view(op.inputs[0]).order, c.tensor(op.outputs[0])
    value = c.dequantized(c.view(op.inputs[0]).value, x)
    c.types[value] = ValueType("float", permuted(result.shape, inverse(order)))
    c.outside.add(value)
    c.views[op.outputs[0]] = View(value, order)


@converts("MAX_POOL_2D", "AVERAGE_POOL_2D", stored=(0,))
def convert_pool(c: Converter, op: TfliteOperator) -> None:
    """A pool over windows; an average counts the pixels inside the image."""
    kernel = (op.option("filterHeight", 1), op.option("filterWidth", 1))
    strides = (op.option("strideH", 1), op.option("strideW", 1))
    c.finish(
        op,
        Unit(
            "MaxPool" if op.code == "MAX_POOL_2D" else "AveragePool",
            (c.operand(op.inputs[0], CHANNELS_FIRST),),
            {"kernel_shape": kernel, "strides": strides, "auto_pad": _PADDINGS[op.option("padding", 0)]},
            bounds=_bounds(c, op),
        ),
        CHANNELS_FIRST,
    )


@converts("MEAN", "REDUCE_MAX", stored=(0,))
def convert_reduction(c: Converter, op: TfliteOperator) -> None:
    """An average or maximum over whole dimensions."""
    x, order = c.tensor(op.inputs[0]), c.natural_order(op.inputs[0])
    rank = len(x.shape)
    axes = sorted({a % rank for a in c.integers(op, 1)})
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    name = c.constant(f"{c.name(op)}/axes", np.array(sorted(order[a] for a in axes), np.int64))
    kind = "ReduceMean" if op.code == "MEAN" else "ReduceMax"
    c.finish(op, Unit(kind, (c.operand(op.inputs[0], order), name), {"keepdims": 1}, shape=kept), order)


@converts("SOFTMAX", stored=(0,))
def convert_softmax(c: Converter, op: TfliteOperator) -> None:
    """A Softmax over the last dimension."""
    order = c.view(op.inputs[0]).order
    if op.options is not None and float(op.options.beta) != 1.0:
        raise Refusal.NORMALIZATION(f"it multiplies by {op.options.beta} first", "use a Softmax with beta 1")
    if order[-1] not in (1, len(order) - 1):
        # The accelerator normalizes over channels or over the last dimension.
        order = (0, *range(2, len(order)), 1)
    c.finish(op, Unit("Softmax", (c.operand(op.inputs[0], order),), {"axis": order[-1]}), order)


@converts("CONCATENATION")
def convert_concatenation(c: Converter, op: TfliteOperator) -> None:
    """Operands one after the other along a dimension."""
    rank = len(c.tensor(op.outputs[0]).shape)
    order = _common_order(c, op.inputs, rank)
    values = tuple(c.operand(i, order) for i in op.inputs)
    axis = order[op.option("axis", 0) % rank]
    c.finish(op, Unit("Concat", values, {"axis": axis}, bounds=_bounds(c, op)), order)


@converts("PACK")
def convert_pack(c: Converter, op: TfliteOperator) -> None:
    """Operands one after the other along a new dimension."""
    result = c.tensor(op.outputs[0])
    rank = len(result.shape)
    axis = op.option("axis", 0) % rank
    part = tuple(1 if i == axis else n for i, n in enumerate(result.shape))
    values = tuple(c.operand(i, identity(rank), part) for i in op.inputs)
    c.finish(op, Unit("Concat", values, {"axis": axis}), identity(rank))


@converts("SPLIT", "SPLIT_V")
def convert_split(c: Converter, op: TfliteOperator) -> None:
    """Parts of an operand along a dimension."""
    x_at, axis_at = (op.inputs[1], 0) if op.code == "SPLIT" else (op.inputs[0], 2)
    whole = {(t.shape, t.scales, t.zero_points) for t in map(c.tensor, (x_at, op.outputs[0]))}
    if len(op.outputs) == len(whole) == 1:
        c.views[op.outputs[0]] = c.view(x_at)
        return
    order, rank = c.natural_order(x_at), len(c.tensor(x_at).shape)
    axis = c.integers(op, axis_at)[0] % rank
    sizes = [c.tensor(i).shape[axis] for i in op.outputs]
    split = c.constant(f"{c.name(op)}/sizes", np.array(sizes, np.int64))
    c.finish(op, Unit("Split", (c.operand(x_at, order), split), {"axis": order[axis]}), *[order] * len(op.outputs))


@converts("STRIDED_SLICE", "SLICE")
def convert_slice(c: Converter, op: TfliteOperator) -> None:
    """A part of an operand, in steps."""
    x, order = c.tensor(op.inputs[0]), c.natural_order(op.inputs[0])
    begin, end, steps = _slice_bounds(c, op, x)
    kept = tuple(len(range(*slice(b, e, s).indices(n))) for b, e, s, n in zip(begin, end, steps, x.shape, strict=True))
    name = c.name(op)
    starts, ends, axes, strides = (
        c.constant(f"{name}/{what}", np.array(values, np.int64))
        for what, values in (("begin", begin), ("end", end), ("axes", order), ("steps", steps))
    )
    c.finish(op, Unit("Slice", (c.operand(op.inputs[0], order), starts, ends, axes, strides), shape=kept), order)


def _slice_bounds(c: Converter, op: TfliteOperator, x: TfliteTensor) -> tuple[list[int], list[int], list[int]]:
    """First element, end and step along every dimension of the operand."""
    begin, rank = c.integers(op, 1), len(x.shape)
    if op.code == "SLICE":
        sizes = c.integers(op, 2)
        end = [n if s < 0 else b + s for b, s, n in zip(begin, sizes, x.shape, strict=True)]
        return begin, end, [1] * rank
    end, steps = c.integers(op, 2), c.integers(op, 3)
    if op.option("ellipsisMask", 0) or op.option("newAxisMask", 0) or op.option("offset", 0) or min(steps) < 1:
        raise Refusal.SELECTION("it has an ellipsis, a new axis or negative steps", "slice with plain bounds")
    shrink = op.option("shrinkAxisMask", 0)
    for axis in range(len(begin)):
        size, bit = x.shape[axis], 1 << axis
        begin[axis] = 0 if op.option("beginMask", 0) & bit else begin[axis] + size * (begin[axis] < 0)
        end[axis] = size if op.option("endMask", 0) & bit else end[axis] + size * (end[axis] < 0)
        if shrink & bit:
            end[axis], steps[axis] = begin[axis] + 1, 1
    rest = range(len(begin), rank)
    return begin + [0 for _ in rest], end + [x.shape[i] for i in rest], steps + [1 for _ in rest]


@converts("PAD", "PADV2", "MIRROR_PAD")
def convert_pad(c: Converter, op: TfliteOperator) -> None:
    """An operand with a constant around it: the zero point, or a given value."""
    if op.code == "MIRROR_PAD":
        # On the accelerator, a mirrored border costs more than the host's copy, and chains regions that then are small.
        raise Refusal.SELECTION("it mirrors the border", "pad with a constant")
    order, rank = c.natural_order(op.inputs[0]), len(c.tensor(op.inputs[0]).shape)
    amounts = np.array(c.integers(op, 1), np.int64).reshape(rank, 2)
    pads = np.zeros((2, rank), np.int64)
    pads[:, list(order)] = amounts.T
    name = c.name(op)
    fill = np.float32(0)
    if op.code == "PADV2":
        value = c.tensor(op.inputs[2])
        fill = np.float32((c.integers(op, 2)[0] - value.zero_points[0]) * np.float32(value.scales[0]))
    inputs = (
        c.operand(op.inputs[0], order),
        c.constant(f"{name}/pads", pads.ravel()),
        c.constant(f"{name}/fill", np.array(fill, np.float32)),
    )
    c.finish(op, Unit("Pad", inputs), order)


@converts("RESHAPE", "SQUEEZE", "EXPAND_DIMS", floats=True)
def convert_reshape(c: Converter, op: TfliteOperator) -> None:
    """The same values in another shape, which is that of the result."""
    x, result = c.tensor(op.inputs[0]), c.tensor(op.outputs[0])
    if prod(x.shape) != prod(result.shape):
        raise Refusal.OPEN_SIZE(f"it reshapes {x.shape} to {result.shape}", "export the model with fixed sizes")
    c.views[op.outputs[0]] = c.reshaped(c.view(op.inputs[0]), x, x.shape, result.shape)


@converts("TRANSPOSE", floats=True)
def convert_transpose(c: Converter, op: TfliteOperator) -> None:
    """Another order of the dimensions: only the view changes."""
    view = c.view(op.inputs[0])
    c.views[op.outputs[0]] = View(view.value, permuted(view.order, tuple(c.integers(op, 1))))


@converts("RESIZE_NEAREST_NEIGHBOR")
@converts("RESIZE_BILINEAR", stored=(0,))
def convert_resize(c: Converter, op: TfliteOperator) -> None:
    """An enlarged or reduced image."""
    x, size = c.tensor(op.inputs[0]), c.integers(op, 1)
    if op.option("alignCorners", 0):
        transform = "align_corners"
    else:
        transform = "half_pixel" if op.option("halfPixelCenters", 0) else "asymmetric"
    if op.code == "RESIZE_BILINEAR" and x.shape[1:3] not in ((1, 1), tuple(size)):
        _interpolate(c, op, transform)
        return
    sizes = c.constant(f"{c.name(op)}/sizes", np.array((x.shape[0], x.shape[3], *size), np.int64))
    # LiteRT rounds coordinates down; with centers it has added the half pixel already, with corners it rounds.
    mode = "floor" if transform == "asymmetric" else "round_prefer_ceil"
    attributes = {"coordinate_transformation_mode": transform, "mode": "nearest", "nearest_mode": mode}
    inputs = c.operand(op.inputs[0], CHANNELS_FIRST), "", "", sizes
    c.finish(op, Unit("Resize", inputs, attributes), CHANNELS_FIRST)


def _interpolate(c: Converter, op: TfliteOperator, transform: str) -> None:
    """A sum of four pixels with weights, which LiteRT divides by a power of two and rounds, ties up.

    A transposed convolution makes `2 * sum + 1` and divides by twice the power, so there is no tie.
    """
    x, result, name = c.tensor(op.inputs[0]), c.tensor(op.outputs[0]), c.name(op)
    corners = transform == "align_corners"
    spans = [[n - corners for n in t.shape[1:3]] for t in (x, result)]
    factors = [after // max(1, before) for before, after in zip(*spans, strict=True)]
    if not all(f in (1, 2, 4) and f * n == m for f, n, m in zip(factors, *spans, strict=True)):
        sizes = " to ".join(f"{t.shape[1]}x{t.shape[2]}" for t in (x, result))
        raise Refusal.RESIZE(f"it interpolates from {sizes} pixels", "enlarge by 2 or 4, or use the nearest pixel")
    # Weights along an axis are multiples of the factor's reciprocal, with centers of half of it.
    power = 2 * prod(factors) * (4 if transform == "half_pixel" else 1)
    (rows, (top, bottom)), (columns, (left, right)) = (linear_axis(f, transform) for f in factors)
    value, channels = c.operand(op.inputs[0], CHANNELS_FIRST), x.shape[3]
    if not corners:
        border = c.constant(f"{name}/border", np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
        padded, shape = f"{name}/padded", (1, channels, x.shape[1] + 2, x.shape[2] + 2)
        c.nodes.append(OnnxNode(f"{padded}/Pad", "Pad", (value, border), (f"{padded}/float",), {"mode": "edge"}))
        c.quantized(f"{padded}/float", padded, x, shape)
        value = c.dequantized(padded, x)
    filters = np.multiply.outer(rows, columns) * power
    stored = np.broadcast_to(filters.astype(np.uint8), (channels, 1, *filters.shape)).copy()
    inputs = [value]
    for what, array, scale in (
        ("weights", stored, np.float32(1 / power)),
        ("half", np.ones(channels, np.int32), np.float32(x.scales[0]) / np.float32(power)),
    ):
        constant = c.constant(f"{name}/{what}", array)
        inputs.append(c.dequantize(constant, c.constant(f"{constant}/scale", np.array(scale)), f"{constant}/real"))
    attributes: dict[str, Attribute] = {"kernel_shape": filters.shape, "strides": tuple(factors), "group": channels}
    attributes["pads"] = (top, left, bottom, right)
    c.finish(op, Unit("ConvTranspose", tuple(inputs), attributes), CHANNELS_FIRST)


@converts("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def convert_depth(c: Converter, op: TfliteOperator) -> None:
    """Blocks of pixels to channels, or back."""
    value, block = c.operand(op.inputs[0], CHANNELS_FIRST), op.option("blockSize", 1)
    name = "DepthToSpace" if op.code == "DEPTH_TO_SPACE" else "SpaceToDepth"
    c.finish(op, Unit(name, (value,), {"blocksize": block}), CHANNELS_FIRST)
