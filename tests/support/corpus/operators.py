"""Forms of operators: QOperator, QDQ, integer chains, weights, limits of sizes."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.corpus.builder import MS, Builder, finished, given, network, parameters, scales, stored
from tests.support.onnx_maker import OnnxMaker, Value

IMAGE = (1, 8, 6, 6)


def _entry(m: OnnxMaker, shape: tuple[int, ...] = IMAGE, zero: int = 120, scale: float = 0.02) -> list[str]:
    """A quantized input, with its parameters."""
    names = parameters(m, scale, zero)
    return [*m.node("QuantizeLinear", [given(m, m.fresh("input"), shape), *names]), *names]


def _end(m: OnnxMaker, value: str, names: list[str]) -> onnx.ModelProto:
    m.outputs += m.node("DequantizeLinear", [value, *names])
    return m.opened()


def _qlinear_conv(kind: type, zero: int, per_channel: bool, bias: bool) -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        x, out = _entry(m), parameters(m, 0.2, 130)
        weights = stored(m, (4, 8, 3, 3), kind)
        if per_channel:
            w = [weights, scales(m, 4), m.constant(np.full(4, zero, kind))]
        else:
            w = [weights, *parameters(m, 0.005, zero, kind)]
        b = [m.constant(np.arange(4, dtype=np.int32) * 999)] if bias else []
        return _end(m, m.node("QLinearConv", [*x, *w, *out, *b], pads=[1] * 4)[0], out)

    return build


def _qlinear_matmul(m: OnnxMaker) -> onnx.ModelProto:
    x, out = _entry(m, (1, 24)), parameters(m, 0.1, 90)
    w = [stored(m, (24, 7)), scales(m, 7), m.constant(np.zeros(7, np.int8))]
    return _end(m, m.node("QLinearMatMul", [*x, *w, *out])[0], out)


def _qgemm(m: OnnxMaker) -> onnx.ModelProto:
    x, out = _entry(m, (1, 24)), parameters(m, 0.1, 90)
    w = [stored(m, (7, 24)), scales(m, 7), m.constant(np.zeros(7, np.int8))]
    bias = m.constant(np.arange(7, dtype=np.int32) * 99)
    return _end(m, m.node("QGemm", [*x, *w, bias, *out], transB=1, **MS)[0], out)


def _qlinear(op: str, operands: int, scale: float, zero: int, **attributes: object) -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        inputs = [name for i in range(operands) for name in _entry(m, zero=120 - 50 * i, scale=0.05 / (i + 1))]
        out = parameters(m, scale, zero)
        ordered = [*out, *inputs] if op == "QLinearConcat" else [*inputs, *out]
        return _end(m, m.node(op, ordered, **MS, **attributes)[0], out)

    return build


def _chain(conv: bool) -> Builder:
    """ConvInteger or MatMulInteger with Cast and Mul, as quantization-aware training exports it."""

    def build(m: OnnxMaker) -> onnx.ModelProto:
        x, out = _entry(m, IMAGE if conv else (1, 24)), parameters(m, 0.1, 90)
        weights = stored(m, (4, 8, 3, 3) if conv else (24, 7))
        (value,) = m.node("ConvInteger" if conv else "MatMulInteger", [x[0], weights, x[2]])
        (value,) = m.node("Cast", [value], to=TensorProto.FLOAT)
        (value,) = m.node("Mul", [value, m.constant(np.float32(0.02 * 0.004))])
        return _end(m, m.node("QuantizeLinear", [value, *out])[0], out)

    return build


def _chain_with_float_end(m: OnnxMaker) -> onnx.ModelProto:
    """A chain whose float bias is no multiple of the accumulator's scale, before one that the host computes."""
    m.opset = 11  # without a DequantizeLinear per channel
    x, middle = _entry(m), parameters(m, 0.02, 90)
    (value,) = m.node("ConvInteger", [x[0], stored(m, (4, 8, 3, 3)), x[2]])
    for kind, values in ("Mul", [8e-5]), ("Add", [0.21, -0.4, 0.113, 0.3]):
        if kind == "Mul":
            (value,) = m.node("Cast", [value], to=TensorProto.FLOAT)
        (value,) = m.node(kind, [value, m.constant(np.array(values, np.float32).reshape(1, -1, 1, 1))])
    (value,) = m.node("QuantizeLinear", [*m.node("Flatten", m.node("Relu", [value])), *middle])
    (value,) = m.node("MatMulInteger", [value, stored(m, (64, 7)), middle[1]])
    (value,) = m.node("Cast", [value], to=TensorProto.FLOAT)
    m.outputs += m.node("Mul", [value, scales(m, 7)])
    return m.opened()


def _dynamic(conv: bool) -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        x = given(m, "x", IMAGE if conv else (1, 24))
        q, scale, zero = m.node("DynamicQuantizeLinear", [x], ["xq", "xs", "xz"])
        weights = stored(m, (4, 8, 3, 3) if conv else (24, 7))
        (value,) = m.node("ConvInteger" if conv else "MatMulInteger", [q, weights, zero])
        (value,) = m.node("Cast", [value], to=TensorProto.FLOAT)
        m.outputs += m.node("Mul", [value, scale])
        return m.opened()

    return build


def _conv(**options: object) -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        return finished(m, m.conv(m.conv(m.image(3, 8, 8), 8), 8, **options))  # type: ignore[arg-type]  # as conv's

    return build


def _small_weights(kind: int, axis: int | None, op: str = "Conv", dtype: str = "uint8") -> Builder:
    """Weights of four bits."""

    def build(m: OnnxMaker) -> onnx.ModelProto:
        m.opset, m.dtype = 21, dtype
        low, high = (-8, 7) if kind == TensorProto.INT4 else (0, 15)
        shape = {"Conv": (4, 8, 1, 1), "ConvTranspose": (8, 4, 1, 1)}.get(op, (8, 4))
        noise = np.random.default_rng(m.rng.getrandbits(32))
        values = noise.integers(low, high + 1, shape)
        count = () if axis is None else (4,)
        m.stored.append(helper.make_tensor("w4", kind, shape, values.ravel().tolist()))
        zero = [(low + high + 1) // 2] * (4 if count else 1)
        m.stored.append(helper.make_tensor("z4", kind, count, zero))
        scale = scales(m, 4) if count else m.constant(np.float32(0.05))
        (w,) = m.node("DequantizeLinear", ["w4", scale, "z4"], **({} if axis is None else {"axis": axis}))
        x = m.image(8, 6, 6)
        if len(shape) == 4:
            (value,) = m.node(op, [x.name, w])
            return finished(m, m.pair(value, (1, 4, 6, 6), 0.05))
        (row,) = m.node("Flatten", m.node("GlobalMaxPool", [x.name]))
        (value,) = m.node(op, [row, w])
        return finished(m, m.pair(value, (1, 4), 0.05))

    return build


def _blocked_weights(m: OnnxMaker) -> onnx.ModelProto:
    m.opset = 21
    zeros = m.constant(np.zeros((4, 2, 1, 1), np.int8))
    names = [stored(m, (4, 8, 1, 1)), m.constant(np.full((4, 2, 1, 1), 0.01, np.float32)), zeros]
    (w,) = m.node("DequantizeLinear", names, axis=1, block_size=4)
    x = m.conv(m.image(3, 6, 6), 8)
    (value,) = m.node("Conv", [x.name, w])
    return finished(m, m.pair(value, (1, 4, 6, 6), 0.05))


def _saturated_bias(m: OnnxMaker) -> onnx.ModelProto:
    """Dead channels, whose bias onnxruntime's quantizer moves to the ends of int32."""
    x = m.image(3, 8, 8)
    weight, found = m.weights((4, 3, 3, 3), 0)
    values = np.array([-(1 << 31) + 999, (1 << 31) - 999, 100, -100], np.int32)
    names = [m.constant(values), m.constant((np.float32(x.scale) * found).astype(np.float32))]
    (bias,) = m.node("DequantizeLinear", [*names, m.constant(np.zeros(4, np.int32))], axis=0)
    (value,) = m.node("Conv", [x.name, weight, bias], pads=[1] * 4)
    return finished(m, m.pair(value, (1, 4, 8, 8), 0.3))


def _float_bias(m: OnnxMaker) -> onnx.ModelProto:
    x = m.image(3, 8, 8)
    weight, _ = m.weights((4, 3, 3, 3), 0)
    (value,) = m.node("Conv", [x.name, weight, m.constant(np.linspace(-1, 1, 4, dtype=np.float32))], pads=[1] * 4)
    return finished(m, m.pair(value, (1, 4, 8, 8), 0.3))


def _classifier(size: int, pool: str = "", scale: float = 1 / 64, width: int = 0) -> Builder:
    """A flattened or pooled image and a Gemm."""

    def build(m: OnnxMaker) -> onnx.ModelProto:
        x = m.image(2, size, width or size)
        if pool.startswith("Reduce"):
            axes = m.constant(np.array([2, 3])) if m.opset > 17 or pool == "ReduceSum" else None
            more = {} if axes else {"axes": [2, 3]}
            (value,) = m.node(pool, [x.name, *([axes] if axes else [])], keepdims=1, **more)
            x = m.pair(value, (1, 2, 1, 1), scale)
        elif pool:
            x = m.pair(m.node(pool, [x.name])[0], (1, 2, 1, 1), scale)
        (row,) = m.node("Flatten", [x.name])
        count = int(np.prod(x.shape))
        row = m.pair(row, (1, count), x.scale).name
        weight, found = m.weights((5, count), 0)
        (value,) = m.node("Gemm", [row, weight, m.bias(found, x.scale)], transB=1)
        return finished(m, m.pair(value, (1, 5), 0.05))

    return build


def _transposed(m: OnnxMaker) -> onnx.ModelProto:
    x = m.conv(m.image(3, 6, 6), 8)
    weight, _ = m.weights((8, 4, 2, 2), 1)
    (value,) = m.node("ConvTranspose", [x.name, weight], strides=[2, 2])
    return finished(m, m.pair(value, (1, 4, 12, 12), 0.3))


def _transposed_sequence(m: OnnxMaker) -> onnx.ModelProto:
    m.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 8, 20)))
    x = m.pair("x", (1, 8, 20), 1 / 255, 9)
    weight, _ = m.weights((8, 4, 5), 1)
    attributes = {"strides": [5], "pads": [1, 2], "output_padding": [1]}
    (value,) = m.node("ConvTranspose", [x.name, weight], **attributes)
    return finished(m, m.pair(value, (1, 4, 98), 0.05))


def _unary(op: str, **attributes: object) -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        return finished(m, m.unary(op, m.conv(m.image(3, 6, 6), 8), None, **attributes))

    return build


def _part(change: Callable[[OnnxMaker, Value], Value]) -> Builder:
    return lambda m: finished(m, m.conv(change(m, m.conv(m.image(3, 8, 8), 8)), 4))


MODELS: dict[str, Builder] = {
    "QLinearConv": _qlinear_conv(np.int8, 0, per_channel=True, bias=True),
    "QLinearConv, weights per tensor": _qlinear_conv(np.int8, 0, per_channel=False, bias=True),
    "QLinearConv, uint8 weights": _qlinear_conv(np.uint8, 117, per_channel=False, bias=True),
    "QLinearConv, uint8 weights per channel, no bias": _qlinear_conv(np.uint8, 128, per_channel=True, bias=False),
    "QLinearMatMul": _qlinear_matmul,
    "QGemm": _qgemm,
    "QLinearAdd": _qlinear("QLinearAdd", 2, 0.0613, 100),
    "QLinearMul": _qlinear("QLinearMul", 2, 0.1, 60),
    "QLinearConcat": _qlinear("QLinearConcat", 2, 0.05, 110, axis=1),
    "QLinearSigmoid": _qlinear("QLinearSigmoid", 1, 1 / 256, 0),
    "QLinearLeakyRelu": _qlinear("QLinearLeakyRelu", 1, 0.04, 60, alpha=0.1),
    "QLinearAveragePool": _qlinear("QLinearAveragePool", 1, 0.043, 110, kernel_shape=[2, 3]),
    "QLinearGlobalAveragePool": _qlinear("QLinearGlobalAveragePool", 1, 0.011, 110),
    "QLinearSoftmax": _qlinear("QLinearSoftmax", 1, 1 / 256, 0, axis=1, opset=13),
    "ConvInteger chain": _chain(conv=True),
    "MatMulInteger chain": _chain(conv=False),
    "integer chains with a float end": _chain_with_float_end,
    "dynamic convolution": _dynamic(conv=True),
    "dynamic MatMul": _dynamic(conv=False),
    "depthwise": _conv(group=8),
    "groups": _conv(group=2),
    "stride 2": _conv(stride=2),
    "uint8 weights": _conv(kind=np.uint8, zero=True),
    "Relu after Conv": _conv(activation="Relu"),
    "INT4 weights": _small_weights(TensorProto.INT4, 0),
    "INT4 weights per tensor": _small_weights(TensorProto.INT4, None),
    "UINT4 weights": _small_weights(TensorProto.UINT4, 0),
    "INT4 weights, int8 activations": _small_weights(TensorProto.INT4, 0, dtype="int8"),
    "INT4 weights of a ConvTranspose": _small_weights(TensorProto.INT4, 1, "ConvTranspose"),
    "INT4 weights of a Gemm": _small_weights(TensorProto.INT4, 1, "Gemm"),
    "INT4 weights of a MatMul": _small_weights(TensorProto.INT4, 1, "MatMul"),
    "blocked weights": _blocked_weights,
    "saturated bias": _saturated_bias,
    "float bias": _float_bias,
    "ConvTranspose": _transposed,
    "ConvTranspose over a sequence": _transposed_sequence,
    "flattened 7x7": _classifier(7),
    "flattened 24x24": _classifier(24),
    "flattened 17x31": _classifier(17, width=31),
    "GlobalAveragePool 7x7": _classifier(7, "GlobalAveragePool"),
    "GlobalAveragePool 56x56": _classifier(56, "GlobalAveragePool"),
    "GlobalAveragePool 32x32": _classifier(32, "GlobalAveragePool"),
    "GlobalAveragePool 64x64": _classifier(64, "GlobalAveragePool"),
    "ReduceMean 40x40": _classifier(40, "ReduceMean"),
    "ReduceSum 7x7": _classifier(7, "ReduceSum", 0.2),
    "SiLU": lambda m: finished(m, m.silu(m.conv(m.image(3, 6, 6), 8))),
    "HardSwish": _unary("HardSwish"),
    "LeakyRelu": _unary("LeakyRelu", alpha=0.1),
    "Softmax": _unary("Softmax", axis=1),
    "MaxPool": _part(lambda m, x: m.maxpool(x, 3, 2)),
    "Resize": _part(lambda m, x: m.resize(x)),
    "Split": _part(lambda m, x: m.split(x)[0]),
    "network": lambda m: finished(m, network(m)),
}
