"""TFLite files of seeded values: each operator alone, and a small network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.importer.tflite.file import TfliteOperator, TfliteTensor, schema
from intloom.compiler.importer.tflite.writer import write_tflite

Scale = tuple[float, int]
PLAIN: Scale = (0.05, 3)


def options(name: str, **values: Any) -> Any:
    """Options of an operator, in the schema's object form."""
    made = getattr(schema(), f"{name}OptionsT")()
    for key, value in values.items():
        assert hasattr(made, key), key
        setattr(made, key, value)
    return made


@dataclass
class TfliteMaker:
    """A file under construction; every method that adds a tensor returns its index."""

    seed: int = 0
    unsigned: bool = False
    """Write the uint8 form of older converters: one scale a tensor, and zero points larger by 128."""
    tensors: list[TfliteTensor] = field(default_factory=list)
    operators: list[TfliteOperator] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def tensor(
        self,
        shape: Sequence[int],
        scale: Scale | None = PLAIN,
        *,
        dtype: str = "INT8",
        data: NDArray[Any] | None = None,
        scales: Sequence[float] = (),
        axis: int = 0,
    ) -> int:
        every = tuple(scales) or (() if scale is None else (scale[0],))
        zeros = (0,) * len(every) if scales or scale is None else (scale[1],)
        if self.unsigned and dtype == "INT8":
            dtype, zeros = "UINT8", tuple(z + 128 for z in zeros)
            data = None if data is None else (data.astype(np.int16) + 128).astype(np.uint8)
        name = f"t{len(self.tensors)}"
        self.tensors.append(TfliteTensor(name, tuple(shape), dtype, every, zeros, axis, data))
        return len(self.tensors) - 1

    def scale(self, tensor: int) -> Scale:
        """Scale and zero point of a tensor, the latter as in the int8 form."""
        made = self.tensors[tensor]
        return made.scales[0], made.zero_points[0] - (128 if made.dtype == "UINT8" else 0)

    def input(self, shape: Sequence[int], scale: Scale | None = PLAIN, dtype: str = "INT8") -> int:
        self.inputs.append(self.tensor(shape, scale, dtype=dtype))
        return self.inputs[-1]

    def integers(self, values: Sequence[int] | int) -> int:
        data = np.array(values, np.int32)
        return self.tensor(data.shape, None, dtype="INT32", data=data)

    def weights(self, shape: Sequence[int], axis: int | None = 0) -> int:
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        scales = () if axis is None or self.unsigned else tuple(self.rng.uniform(0.002, 0.02, shape[axis]))
        return self.tensor(shape, (0.01, 0), data=data, scales=scales, axis=axis or 0)

    def bias(self, x: int, weights: int, count: int) -> int:
        """int32 biases with the scales of the sums."""
        scales = self.tensors[x].scales[0] * np.array(self.tensors[weights].scales)
        data = self.rng.integers(-500, 500, count).astype(np.int32)
        return self.tensor(
            (count,), (float(scales[0]), 0), dtype="INT32", data=data, scales=tuple(scales) if len(scales) > 1 else ()
        )

    def add(self, code: str, inputs: Sequence[int], outputs: Sequence[int], made: Any = None, version: int = 1) -> int:
        index = len(self.operators)
        self.operators.append(TfliteOperator(index, code, version, tuple(inputs), tuple(outputs), made))
        return outputs[0]

    def conv(
        self, x: int, filters: int, kernel: int = 3, *, stride: int = 1, activation: int = 0, padding: int = 0
    ) -> int:
        shape = self.tensors[x].shape
        weights = self.weights((filters, kernel, kernel, shape[3]))
        size = [-(-n // stride) if padding == 0 else (n - kernel) // stride + 1 for n in shape[1:3]]
        made = options("Conv2D", padding=padding, strideH=stride, strideW=stride, dilationHFactor=1, dilationWFactor=1)
        made.fusedActivationFunction = activation
        result = self.tensor((1, *size, filters), (0.1, -5))
        return self.add("CONV_2D", [x, weights, self.bias(x, weights, filters)], [result], made, 3)

    def depthwise(self, x: int, kernel: int = 3, *, stride: int = 1, multiplier: int = 1) -> int:
        shape = self.tensors[x].shape
        count = shape[3] * multiplier
        weights = self.weights((1, kernel, kernel, count), 3)
        made = options("DepthwiseConv2D", padding=0, strideH=stride, strideW=stride, depthMultiplier=multiplier)
        made.dilationHFactor = made.dilationWFactor = 1
        result = self.tensor((1, *(-(-n // stride) for n in shape[1:3]), count), (0.08, 4))
        return self.add("DEPTHWISE_CONV_2D", [x, weights, self.bias(x, weights, count)], [result], made, 3)

    def unary(self, code: str, x: int, scale: Scale, made: Any = None) -> int:
        return self.add(code, [x], [self.tensor(self.tensors[x].shape, scale)], made)

    def binary(self, code: str, a: int, b: int, scale: Scale = (0.07, -11), activation: int = 0) -> int:
        made = options({"ADD": "Add", "SUB": "Sub", "MUL": "Mul"}[code], fusedActivationFunction=activation)
        return self.add(code, [a, b], [self.tensor(self.tensors[a].shape, scale)], made)

    def concatenation(self, parts: Sequence[int], axis: int = 3) -> int:
        shape = list(self.tensors[parts[0]].shape)
        shape[axis] = sum(self.tensors[p].shape[axis] for p in parts)
        result = self.tensor(shape, self.scale(parts[0]))
        return self.add("CONCATENATION", parts, [result], options("Concatenation", axis=axis))

    def moved(self, code: str, inputs: Sequence[int], shape: Sequence[int], made: Any = None) -> int:
        """An operator that keeps the scale of its first input."""
        x = next(i for i in inputs if self.tensors[i].scales)
        return self.add(code, inputs, [self.tensor(shape, self.scale(x))], made)

    def data(self, *outputs: int) -> bytes:
        return write_tflite(self.tensors, self.operators, self.inputs, outputs)

    def save(self, path: Path, *outputs: int) -> Path:
        path.write_bytes(self.data(*outputs))
        return path


def _image(m: TfliteMaker, channels: int = 12, size: int = 8) -> int:
    return m.input((1, size, size, channels))


def _transpose_conv(m: TfliteMaker, kernel: int = 2, stride: int = 2, padding: int = 0, bias: bool = False) -> int:
    x = _image(m)
    weights = m.weights((8, kernel, kernel, 12))
    made = options("TransposeConv", padding=padding, strideH=stride, strideW=stride)
    size = 8 * stride + padding * max(0, kernel - stride)
    inputs = [m.integers((1, size, size, 8)), weights, x, *([m.bias(x, weights, 8)] if bias else [])]
    return m.add("TRANSPOSE_CONV", inputs, [m.tensor((1, size, size, 8), (0.1, 2))], made, 3 if bias else 1)


def _fully_connected(m: TfliteMaker, shape: Sequence[int], activation: int = 0) -> int:
    x = m.input(shape)
    weights = m.weights((9, shape[-1]), None)
    made = options("FullyConnected", fusedActivationFunction=activation, keepNumDims=len(shape) > 2)
    result = m.tensor((*shape[:-1], 9), (0.2, 7))
    return m.add("FULLY_CONNECTED", [x, weights, m.bias(x, weights, 9)], [result], made, 4)


def _flattened(m: TfliteMaker, x: int) -> int:
    flat = m.moved("RESHAPE", [x, m.integers((1, 512))], (1, 512))
    weights = m.weights((5, 512), None)
    result = m.tensor((1, 5), (0.9, 7))
    return m.add("FULLY_CONNECTED", [flat, weights, m.bias(flat, weights, 5)], [result], options("FullyConnected"), 4)


def _pixels(m: TfliteMaker) -> int:
    """A Dense layer behind a convolution: every pixel is a row."""
    rows = m.moved("RESHAPE", [m.conv(_image(m), 16), m.integers((64, 16))], (64, 16))
    weights = m.weights((9, 16), None)
    made = m.tensor((64, 9), (0.2, 7))
    m.add("FULLY_CONNECTED", [rows, weights, m.bias(rows, weights, 9)], [made], options("FullyConnected"), 4)
    return m.moved("RESHAPE", [made, m.integers((1, 576))], (1, 576))


def _sequence(m: TfliteMaker) -> int:
    """Rows of an image as a sequence, as of a network for keywords or text."""
    rows = m.moved("RESHAPE", [m.conv(_image(m), 16), m.integers((8, 128))], (8, 128))
    weights = m.weights((9, 128), None)
    made = m.tensor((8, 9), (0.6, 7))
    return m.add("FULLY_CONNECTED", [rows, weights, m.bias(rows, weights, 9)], [made], options("FullyConnected"), 4)


def _anchors(m: TfliteMaker) -> int:
    """Classes of a detector: channels of a pixel become rows, in the order of the file."""
    rows = m.moved("RESHAPE", [m.conv(_image(m), 10), m.integers((1, 320, 2))], (1, 320, 2))
    best = m.tensor((1, 320), None, dtype="INT32")
    return m.add("ARG_MAX", [rows, m.integers(2)], [best], options("ArgMax", outputType=2))


def _pool(m: TfliteMaker, code: str, size: int, stride: int, padding: int) -> int:
    x = _image(m)
    made = options("Pool2D", padding=padding, strideH=stride, strideW=stride, filterHeight=size, filterWidth=size)
    side = -(-8 // stride) if padding == 0 else (8 - size) // stride + 1
    return m.moved(code, [x], (1, side, side, 12), made)


def _softmax(m: TfliteMaker) -> int:
    return m.add(
        "SOFTMAX", [m.input((1, 10), (0.15, 4))], [m.tensor((1, 10), (1 / 256, -128))], options("Softmax", beta=1.0)
    )


def _softmax_of_image(m: TfliteMaker, beta: float) -> int:
    x, result = m.conv(_image(m), 16), m.tensor((1, 8, 8, 16), (1 / 256, -128))
    return m.add("SOFTMAX", [x], [result], options("Softmax", beta=beta))


def _mean(m: TfliteMaker) -> int:
    x = _image(m)
    return m.moved("MEAN", [x, m.integers((1, 2))], (1, 1, 1, 12), options("Reducer", keepDims=True))


def _attention(m: TfliteMaker) -> int:
    """Sums of rows, whose weights are products of other rows."""
    queries, keys, values = m.input((1, 12, 20)), m.input((1, 9, 20), (0.04, 0)), m.input((1, 9, 32))
    scores, weights = m.tensor((1, 12, 9), (0.3, 4)), m.tensor((1, 12, 9), (1 / 256, -128))
    m.add("BATCH_MATMUL", [queries, keys], [scores], options("BatchMatMul", adjX=False, adjY=True))
    m.add("SOFTMAX", [scores], [weights], options("Softmax", beta=1.0))
    made = options("BatchMatMul", adjX=False, adjY=False)
    return m.add("BATCH_MATMUL", [weights, values], [m.tensor((1, 12, 32), (0.04, 1))], made)


def _heads(m: TfliteMaker) -> int:
    """Attention of two heads over pixels, joined by movements before a layer reads them as an image."""
    x = m.moved("RESHAPE", [m.conv(_image(m), 16), m.integers((1, 64, 2, 8))], (1, 64, 2, 8))
    rows = m.moved("TRANSPOSE", [x, m.integers((0, 2, 1, 3))], (1, 2, 64, 8))
    columns = m.moved("TRANSPOSE", [x, m.integers((0, 2, 3, 1))], (1, 2, 8, 64))
    scores, weights = m.tensor((1, 2, 64, 64), (0.3, 4)), m.tensor((1, 2, 64, 64), (1 / 256, -128))
    m.add("BATCH_MATMUL", [rows, columns], [scores], options("BatchMatMul"))
    m.add("SOFTMAX", [scores], [weights], options("Softmax", beta=1.0))
    sums = m.tensor((1, 2, 64, 8), (0.04, 1))
    m.add("BATCH_MATMUL", [weights, rows], [sums], options("BatchMatMul"))
    pixels = m.moved("TRANSPOSE", [sums, m.integers((0, 2, 1, 3))], (1, 64, 2, 8))
    image = m.moved("RESHAPE", [pixels, m.integers((1, 8, 8, 16))], (1, 8, 8, 16))
    layer, result = m.weights((9, 16), None), m.tensor((1, 8, 8, 9), (0.1, 7))
    made = options("FullyConnected", keepNumDims=True)
    return m.add("FULLY_CONNECTED", [image, layer, m.bias(image, layer, 9)], [result], made, 4)


def _mean_of_channels(m: TfliteMaker) -> int:
    """A mean between two parts on the accelerator, the second of which reads it in another shape."""
    rows = m.moved("RESHAPE", [m.conv(_image(m), 16), m.integers((1, 64, 16))], (1, 64, 16))
    mean = m.moved("MEAN", [rows, m.integers(2)], (1, 64), options("Reducer"))
    weights, result = m.weights((64, 64), None), m.tensor((1, 64), (0.2, 7))
    return m.add("FULLY_CONNECTED", [mean, weights, m.bias(mean, weights, 64)], [result], options("FullyConnected"), 4)


def _split(m: TfliteMaker) -> int:
    x = _image(m, 32)
    parts = [m.tensor((1, 8, 8, 16)) for _ in range(2)]
    m.add("SPLIT", [m.integers(3), x], parts, options("Split", numSplits=2))
    return m.binary("ADD", *parts)


def _grouped(m: TfliteMaker) -> int:
    x = _image(m, 16)
    parts = [m.tensor((1, 8, 8, 1)) for _ in range(16)]
    m.add("SPLIT", [m.integers(3), x], parts, options("Split", numSplits=16))
    return m.concatenation([m.conv(p, 1) for p in parts])


def _slice(m: TfliteMaker) -> int:
    x = m.conv(_image(m), 32)
    made = options("StridedSlice", beginMask=0b0111, endMask=0b1111)
    bounds = [m.integers(v) for v in ((0, 0, 0, 16), (0, 0, 0, 0), (1, 1, 1, 1))]
    return m.moved("STRIDED_SLICE", [x, *bounds], (1, 8, 8, 16), made)


def _row(m: TfliteMaker, begin: int) -> int:
    """One row of an image, whose dimension goes, named from either end."""
    x = m.conv(_image(m), 16)
    made = options("StridedSlice", beginMask=0b1101, endMask=0b1101, shrinkAxisMask=0b0010)
    bounds = [m.integers(v) for v in ((0, begin, 0, 0), (0, 0, 0, 0), (1, 1, 1, 1))]
    return m.conv(m.moved("EXPAND_DIMS", [m.moved("STRIDED_SLICE", [x, *bounds], (1, 8, 16), made), m.integers(1)],
                          (1, 1, 8, 16), options("ExpandDims")), 4, 1)  # fmt: skip


def _new_axis(m: TfliteMaker) -> int:
    x = m.conv(_image(m), 16)
    made = options("StridedSlice", beginMask=0b11110, endMask=0b11110, newAxisMask=0b00001)
    bounds = [m.integers((n,) * 5) for n in (0, 0, 1)]
    rows = m.moved("STRIDED_SLICE", [x, *bounds], (1, 1, 8, 8, 16), made)
    return m.conv(m.moved("RESHAPE", [rows, m.integers((1, 8, 8, 16))], (1, 8, 8, 16)), 4)


def _packed(m: TfliteMaker) -> int:
    """Two vectors as the rows of a matrix, as of the outputs of two heads."""
    rows = [_fully_connected(m, (1, 40)) for _ in range(2)]
    return m.moved("PACK", rows, (1, 2, 9), options("Pack", valuesCount=2, axis=1))


def _computed_weights(m: TfliteMaker) -> int:
    x, w = (m.moved("RESHAPE", [m.conv(_image(m), 16), m.integers((64, 16))], (64, 16)) for _ in range(2))
    result = m.tensor((64, 64), (0.6, 7))
    return m.add("FULLY_CONNECTED", [x, w, -1], [result], options("FullyConnected"), 4)


def _padded_channels(m: TfliteMaker) -> int:
    """As where a sum of BlazeFace has more channels than its input."""
    x = m.conv(_image(m), 20)
    y = m.moved("PAD", [x, m.integers([[0, 0], [0, 0], [0, 0], [0, 12]])], (1, 8, 8, 32), options("Pad"))
    return m.binary("ADD", m.conv(x, 32), y)


def _pad(m: TfliteMaker) -> int:
    x = m.conv(_image(m), 8)
    wide = m.moved("PAD", [x, m.integers([[0, 0], [1, 1], [1, 1], [0, 0]])], (1, 10, 10, 8), options("Pad"))
    return m.conv(wide, 16, stride=2, padding=1)


def _transposed(m: TfliteMaker) -> int:
    x = m.conv(_image(m), 16)
    turned = m.moved("TRANSPOSE", [x, m.integers((0, 3, 1, 2))], (1, 16, 8, 8))
    return m.moved("RESHAPE", [turned, m.integers((1, 16, 64))], (1, 16, 64))


def _resize(m: TfliteMaker, **coordinates: bool) -> int:
    x = m.conv(_image(m), 16)
    made = options("ResizeNearestNeighbor", **coordinates)
    return m.moved("RESIZE_NEAREST_NEIGHBOR", [x, m.integers((16, 16))], (1, 16, 16, 16), made)


def _arg_max(m: TfliteMaker) -> int:
    x = m.conv(_image(m), 16)
    return m.add(
        "ARG_MAX", [x, m.integers(3)], [m.tensor((1, 8, 8), None, dtype="INT32")], options("ArgMax", outputType=2)
    )


def _float_ends(m: TfliteMaker) -> int:
    x = m.tensor((1, 8, 8, 12))
    m.add("QUANTIZE", [m.input((1, 8, 8, 12), None, "FLOAT32")], [x], options("Quantize"))
    y = m.conv(x, 20)
    return m.add("DEQUANTIZE", [y], [m.tensor((1, 8, 8, 20), None, dtype="FLOAT32")], options("Dequantize"))


def _constant_operand(m: TfliteMaker, code: str, shape: Sequence[int]) -> int:
    data = m.rng.integers(-100, 101, shape).astype(np.int8)
    return m.binary(code, _image(m), m.tensor(shape, (0.03, 5), data=data))


def _constant_part(m: TfliteMaker, axis: int, channels: int = 20) -> int:
    """As of coordinates, which a network appends to its channels."""
    x = m.conv(_image(m), channels)
    shape = list(m.tensors[x].shape)
    shape[axis] = 2
    data = m.rng.integers(-128, 128, shape).astype(np.int8)
    return m.conv(m.concatenation([x, m.tensor(shape, m.scale(x), data=data)], axis), 6)


def _scaled_uint8_input(m: TfliteMaker) -> int:
    """As of Keras models that begin with a Rescaling."""
    x = m.unary("QUANTIZE", m.input((1, 8, 8, 12), (0.03, 133), "UINT8"), (0.03, 5), options("Quantize"))
    return m.conv(m.binary("MUL", x, m.tensor((), (0.03, 5), data=np.array(90, np.int8))), 20)


def _constant_image(m: TfliteMaker) -> int:
    data = m.rng.integers(-100, 101, (1, 8, 8, 1)).astype(np.int8)
    return m.binary("MUL", m.conv(_image(m), 1), m.tensor(data.shape, (0.03, 5), data=data))


def _positions(m: TfliteMaker) -> int:
    """As of a transformer: a constant for each token, then one for all of them."""
    x = m.moved("RESHAPE", [m.conv(_image(m), 16), m.integers((1, 64, 16))], (1, 64, 16))
    for shape in ((1, 64, 16), (16,)):
        data = m.rng.integers(-100, 101, shape).astype(np.int8)
        x = m.binary("ADD", x, m.tensor(shape, (0.03, 5), data=data), (0.12, 4))
    return x


def small_network(m: TfliteMaker) -> int:
    """A convolution with its SiLU, a bottleneck of two branches, a pool, and a classifier."""
    x = m.conv(m.input((1, 16, 16, 3), (1 / 255, -128)), 16, stride=2, activation=0)
    x = m.binary("MUL", x, m.unary("LOGISTIC", x, (1 / 256, -128)), (0.06, -120))
    y = m.depthwise(m.conv(x, 16, 1, activation=3))
    x = m.binary("ADD", x, m.conv(y, 16, 1), (0.12, 9))
    x = m.concatenation([x, m.moved("MAX_POOL_2D", [x], (1, 8, 8, 16), _pool_options(5))])
    x = m.moved("AVERAGE_POOL_2D", [x], (1, 1, 1, 32), _pool_options(8, padding=1))
    flat = m.moved("RESHAPE", [x, m.integers((1, 32))], (1, 32))
    weights = m.weights((10, 32), None)
    scores = m.tensor((1, 10), (0.2, 7))
    m.add("FULLY_CONNECTED", [flat, weights, m.bias(flat, weights, 10)], [scores], options("FullyConnected"), 4)
    return m.add("SOFTMAX", [scores], [m.tensor((1, 10), (1 / 256, -128))], options("Softmax", beta=1.0))


def _products(m: TfliteMaker) -> int:
    """The product of two matrices, of which the second is transposed."""
    a, b = m.input((1, 12, 20)), m.input((1, 9, 20), (0.04, 0))
    made = options("BatchMatMul", adjX=False, adjY=True)
    return m.add("BATCH_MATMUL", [a, b], [m.tensor((1, 12, 9), (0.3, 4))], made)


def _constant_products(m: TfliteMaker) -> int:
    """Constants on the left of columns, and on the right of each head's rows."""
    x = m.moved("TRANSPOSE", [m.input((1, 10, 6)), m.integers((0, 2, 1))], (1, 6, 10))
    factors = m.tensor((1, 12, 6), (0.02, 5), data=m.rng.integers(-128, 128, (1, 12, 6)).astype(np.int8))
    made = options("BatchMatMul", adjX=False, adjY=False)
    x = m.add("BATCH_MATMUL", [factors, x], [m.tensor((1, 12, 10), (0.3, 4))], made)
    heads = m.moved("RESHAPE", [x, m.integers((1, 3, 4, 10))], (1, 3, 4, 10))
    factors = m.tensor((1, 3, 10, 7), (0.02, 5), data=m.rng.integers(-128, 128, (1, 3, 10, 7)).astype(np.int8))
    return m.add("BATCH_MATMUL", [heads, factors], [m.tensor((1, 3, 4, 7), (0.9, 4))], made)


def _prelu(m: TfliteMaker) -> int:
    slopes = m.rng.integers(-60, 127, (1, 1, 12)).astype(np.int8)
    x = _image(m)
    slope = m.tensor((1, 1, 12), (0.01, 0), data=slopes)
    return m.add("PRELU", [x, slope], [m.tensor((1, 8, 8, 12), (0.05, -3))])


def _pool_options(size: int, padding: int = 0) -> Any:
    return options("Pool2D", padding=padding, strideH=1, strideW=1, filterHeight=size, filterWidth=size)


def _extreme(m: TfliteMaker, code: str) -> int:
    return m.moved(code, [_image(m), _image(m)], (1, 8, 8, 12), options("MaximumMinimum"))


def _broadcast_extreme(m: TfliteMaker, code: str) -> int:
    x, means = m.conv(_image(m), 12), m.tensor((1, 1, 1, 12), (0.1, -5))
    m.add("REDUCE_MAX", [x, m.integers((1, 2))], [means], options("Reducer", keepDims=True))
    return m.moved(code, [x, means], (1, 8, 8, 12), options("MaximumMinimum"))


def _limit(m: TfliteMaker) -> int:
    limit = m.tensor((), data=np.array(17, np.int8))
    return m.moved("MINIMUM", [_image(m), limit], (1, 8, 8, 12), options("MaximumMinimum"))


def _padded_by_a_value(m: TfliteMaker) -> int:
    x = m.conv(_image(m), 8)
    value = m.tensor((), m.scale(x), data=np.array(40, np.int8))
    wide = m.moved("PADV2", [x, m.integers([[0, 0], [1, 2], [3, 1], [0, 0]]), value], (1, 11, 12, 8))
    return m.conv(wide, 16, padding=1)


def _mirrored(m: TfliteMaker) -> int:
    """As of a network that transfers styles."""
    operands = [m.conv(_image(m), 8), m.integers([[0, 0], [1, 1], [1, 2], [0, 0]])]
    return m.conv(m.moved("MIRROR_PAD", operands, (1, 10, 11, 8), options("MirrorPad", mode=0)), 16)


def _expanded(m: TfliteMaker) -> int:
    flat = m.moved("SQUEEZE", [m.conv(_image(m), 8)], (8, 8, 8), options("Squeeze", squeezeDims=[0]))
    return m.conv(m.moved("EXPAND_DIMS", [flat, m.integers(0)], (1, 8, 8, 8), options("ExpandDims")), 16)


def _rows(m: TfliteMaker) -> int:
    x = m.conv(_image(m), 16)
    return m.moved("SLICE", [x, m.integers((0, 2, 1, 0)), m.integers((-1, 5, 4, 16))], (1, 5, 4, 16), options("Slice"))


def _blocks(m: TfliteMaker) -> int:
    deep = m.moved("SPACE_TO_DEPTH", [m.conv(_image(m), 16)], (1, 4, 4, 64), options("SpaceToDepth", blockSize=2))
    x = m.conv(deep, 12, 1)
    return m.moved("DEPTH_TO_SPACE", [x], (1, 8, 8, 3), options("DepthToSpace", blockSize=2))


def _bilinear(m: TfliteMaker, rows: int, columns: int, size: int = 8, **coordinates: bool) -> int:
    made, x = options("ResizeBilinear", **coordinates), m.conv(_image(m, size=size), 16)
    return m.conv(m.moved("RESIZE_BILINEAR", [x, m.integers((rows, columns))], (1, rows, columns, 16), made), 8)


def _gate(m: TfliteMaker) -> int:
    """Squeeze and excitation: a table on an average, whose result is not stored."""
    x = m.conv(_image(m), 12)
    mean = m.moved("MEAN", [x, m.integers((1, 2))], (1, 1, 1, 12), options("Reducer", keepDims=True))
    return m.binary("MUL", x, m.unary("LOGISTIC", mean, (1 / 256, -128)), (0.06, 3))


def _flat_gate(m: TfliteMaker) -> int:
    """As of a speaker network: an average over time of rows of channels, then a BatchNormalization."""
    x = m.moved("TRANSPOSE", [m.conv(_image(m), 20), m.integers((0, 3, 1, 2))], (1, 20, 8, 8))
    rows = m.moved("RESHAPE", [x, m.integers((1, 160, 8))], (1, 160, 8))
    mean = m.moved("MEAN", [rows, m.integers(2)], (1, 160), options("Reducer"))
    factors = m.tensor((160,), (0.03, 5), data=m.rng.integers(-100, 101, 160).astype(np.int8))
    return m.binary("MUL", mean, factors, (0.02, 7))


def _signal(m: TfliteMaker) -> int:
    """A float signal, a constant for each channel, and a flattening whose size the file computes but does not state."""
    x = m.add("QUANTIZE", [m.input((1, 64, 1), None, "FLOAT32")], [m.tensor((1, 64, 1))], options("Quantize"))
    image = m.moved("EXPAND_DIMS", [x, m.integers(1)], (1, 1, 64, 1), options("ExpandDims"))
    row = m.moved("RESHAPE", [m.conv(image, 16), m.integers((-1, 64, 16))], (1, 64, 16))
    x = m.binary("ADD", row, m.tensor((1, 1, 16), data=m.rng.integers(-100, 101, (1, 1, 16)).astype(np.int8)))
    sizes = m.add("SHAPE", [x], [m.tensor((3,), None, dtype="INT32")], options("Shape", outType=2))
    parts = [sizes, m.integers([0]), m.integers([1]), m.integers([1])]
    scalar = m.tensor((), None, dtype="INT32")
    m.add("STRIDED_SLICE", parts, [scalar], options("StridedSlice", shrinkAxisMask=1))
    shape = m.tensor((2,), None, dtype="INT32")
    m.add("PACK", [scalar, m.integers(-1)], [shape], options("Pack", valuesCount=2))
    flat, weights = m.moved("RESHAPE", [x, shape], (1, 1)), m.weights((5, 1024), None)
    return m.add(
        "FULLY_CONNECTED", [flat, weights, m.bias(flat, weights, 5)], [m.tensor((1, 5), (0.9, 7))],
        options("FullyConnected"), 4,
    )  # fmt: skip


def _spectrogram(m: TfliteMaker) -> int:
    """As of YAMNet: float frames become an image of one channel, and a SPLIT has one part."""
    x = m.add("QUANTIZE", [m.input((1, 16, 12), None, "FLOAT32")], [m.tensor((1, 16, 12))], options("Quantize"))
    image = m.moved("RESHAPE", [x, m.integers((1, 16, 12, 1))], (1, 16, 12, 1))
    return m.conv(m.moved("SPLIT", [m.integers(3), image], (1, 16, 12, 1), options("Split", numSplits=1)), 16)


def _largest(m: TfliteMaker, axes: Sequence[int], shape: Sequence[int]) -> int:
    return m.moved("REDUCE_MAX", [m.conv(_image(m), 16), m.integers(axes)], shape, options("Reducer"))


def _concatenation(m: TfliteMaker) -> int:
    x = m.conv(_image(m), 16)
    return m.concatenation([x, m.moved("MAX_POOL_2D", [x], (1, 8, 8, 16), _pool_options(3))])


FILES: dict[str, Callable[[TfliteMaker], int]] = {
    "CONV_2D": lambda m: m.conv(_image(m), 20, stride=2),
    "CONV_2D of a 1x1 kernel, RELU6": lambda m: m.conv(_image(m), 20, 1, activation=3),
    "CONV_2D without padding, RELU": lambda m: m.conv(_image(m), 20, padding=1, activation=1),
    "DEPTHWISE_CONV_2D": lambda m: m.depthwise(_image(m)),
    "DEPTHWISE_CONV_2D, two filters a channel": lambda m: m.depthwise(_image(m), stride=2, multiplier=2),
    "TRANSPOSE_CONV": _transpose_conv,
    "TRANSPOSE_CONV with an odd border": lambda m: _transpose_conv(m, 3, 2),
    "TRANSPOSE_CONV with a bias, without a border": lambda m: _transpose_conv(m, 3, 2, 1, bias=True),
    "TRANSPOSE_CONV with a wide border": lambda m: _transpose_conv(m, 5, 2, bias=True),
    "FULLY_CONNECTED": lambda m: _fully_connected(m, (1, 40)),
    "FULLY_CONNECTED over rows, RELU": lambda m: _fully_connected(m, (1, 6, 24), 1),
    "FULLY_CONNECTED of an image": lambda m: _flattened(m, m.conv(_image(m), 8)),
    "FULLY_CONNECTED of an input image": lambda m: _flattened(m, _image(m, 8)),
    "FULLY_CONNECTED of pixels": _pixels,
    "FULLY_CONNECTED of rows of pixels": _sequence,
    "ADD": lambda m: m.binary("ADD", _image(m), m.input((1, 8, 8, 12), (0.11, -20))),
    "ADD of a constant per channel": lambda m: _constant_operand(m, "ADD", (12,)),
    "ADD, RELU inside the range": lambda m: m.binary("ADD", _image(m), _image(m), (0.1, -10), 1),
    "SUB": lambda m: m.binary("SUB", _image(m), m.input((1, 8, 8, 12), (0.02, 30))),
    "MUL": lambda m: m.binary("MUL", _image(m), m.input((1, 8, 8, 12), (0.02, 30)), (0.013, 2)),
    "MUL, RELU6 inside the range": lambda m: m.binary("MUL", _image(m), _image(m), (0.1, -10), 3),
    "MUL by a scalar": lambda m: _constant_operand(m, "MUL", ()),
    "MUL by an image": _constant_image,
    "ADD of positions to tokens": _positions,
    "MUL by a gate": _gate,
    "MUL by channels of rows": _flat_gate,
    "MAXIMUM": lambda m: _extreme(m, "MAXIMUM"),
    "MAXIMUM of an image and a pixel, which LiteRT runs": lambda m: _broadcast_extreme(m, "MAXIMUM"),
    "MINIMUM": lambda m: _extreme(m, "MINIMUM"),
    "MINIMUM of a scalar": _limit,
    "LOGISTIC": lambda m: m.unary("LOGISTIC", _image(m), (1 / 256, -128)),
    "TANH": lambda m: m.unary("TANH", _image(m), (1 / 128, 0)),
    "HARD_SWISH": lambda m: m.unary("HARD_SWISH", _image(m), (0.04, -110)),
    "LEAKY_RELU": lambda m: m.unary("LEAKY_RELU", _image(m), (0.05, -60), options("LeakyRelu", alpha=0.1)),
    "RELU": lambda m: m.unary("RELU", _image(m), PLAIN),
    "RELU_N1_TO_1": lambda m: m.unary("RELU_N1_TO_1", _image(m), PLAIN),
    "RELU6": lambda m: m.unary("RELU6", _image(m), PLAIN),
    "PRELU": _prelu,
    "BATCH_MATMUL": _products,
    "BATCH_MATMUL of a Softmax": _attention,
    "BATCH_MATMUL with constants": _constant_products,
    "BATCH_MATMUL of heads before FULLY_CONNECTED": _heads,
    "MUL of a uint8 input with a constant": _scaled_uint8_input,
    "QUANTIZE": lambda m: m.unary("QUANTIZE", _image(m), (0.031, 40), options("Quantize")),
    "MAX_POOL_2D": lambda m: _pool(m, "MAX_POOL_2D", 3, 2, 0),
    "AVERAGE_POOL_2D": lambda m: _pool(m, "AVERAGE_POOL_2D", 2, 2, 1),
    "AVERAGE_POOL_2D with a border": lambda m: _pool(m, "AVERAGE_POOL_2D", 3, 1, 0),
    "MEAN": _mean,
    "MEAN of channels": _mean_of_channels,
    "REDUCE_MAX": lambda m: _largest(m, (1, 2), (1, 16)),
    "REDUCE_MAX of rows": lambda m: _largest(m, (1,), (1, 8, 16)),
    "REDUCE_MAX of channels": lambda m: _largest(m, (3,), (1, 8, 8)),
    "SOFTMAX": _softmax,
    "SOFTMAX of halves, which LiteRT runs": lambda m: m.conv(_softmax_of_image(m, 0.5), 4),
    "SOFTMAX of doubles, which LiteRT runs": lambda m: m.conv(_softmax_of_image(m, 2.0), 4),
    "CONCATENATION with constant channels": lambda m: _constant_part(m, 3),
    "CONCATENATION with constant channels that fill words": lambda m: _constant_part(m, 3, 16),
    "CONCATENATION with constant rows": lambda m: _constant_part(m, 1),
    "CONCATENATION": _concatenation,
    "SPLIT": _split,
    "SPLIT to groups of a convolution": _grouped,
    "SPLIT of a float spectrogram": _spectrogram,
    "STRIDED_SLICE": _slice,
    "STRIDED_SLICE of a row": lambda m: _row(m, 3),
    "STRIDED_SLICE of the last row": lambda m: _row(m, -1),
    "STRIDED_SLICE with a new axis, which LiteRT runs": _new_axis,
    "PACK": _packed,
    "FULLY_CONNECTED with computed weights": _computed_weights,
    "SLICE": _rows,
    "PAD": _pad,
    "PAD of channels": _padded_channels,
    "PADV2": _padded_by_a_value,
    "MIRROR_PAD, which LiteRT runs": _mirrored,
    "SQUEEZE and EXPAND_DIMS": _expanded,
    "SPACE_TO_DEPTH and DEPTH_TO_SPACE": _blocks,
    "RESIZE_BILINEAR": lambda m: _bilinear(m, 32, 16),
    "RESIZE_BILINEAR, centers": lambda m: _bilinear(m, 16, 32, halfPixelCenters=True),
    "RESIZE_BILINEAR, corners": lambda m: _bilinear(m, 29, 15, alignCorners=True),
    "RESIZE_BILINEAR to the same size": lambda m: _bilinear(m, 8, 8, alignCorners=True),
    "RESIZE_BILINEAR of a pixel": lambda m: _bilinear(m, 33, 8, 1),
    "RESIZE_BILINEAR of thirds, which LiteRT runs": lambda m: _bilinear(m, 24, 24),
    "TRANSPOSE and RESHAPE": _transposed,
    "RESHAPE to rows, which LiteRT runs": _anchors,
    "RESIZE_NEAREST_NEIGHBOR": _resize,
    "RESIZE_NEAREST_NEIGHBOR, centers": lambda m: _resize(m, halfPixelCenters=True),
    "RESIZE_NEAREST_NEIGHBOR, corners": lambda m: _resize(m, alignCorners=True),
    "float input and output": _float_ends,
    "float signal": _signal,
    "ARG_MAX, which LiteRT runs": _arg_max,
    "network": small_network,
}
"""Files by what they contain."""


def tflite_bytes(name: str, seed: int = 0, *, unsigned: bool = False) -> bytes:
    """The file of a name."""
    m = TfliteMaker(seed, unsigned)
    return m.data(FILES[name](m))
