"""Types of activations, and all rules for the type of a QuantizeLinear."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.corpus.builder import Builder, finished, given, network, parameters, stored
from tests.support.onnx_maker import OnnxMaker


def _typed(output_dtype: int = 0, zero: int | None = None, kind: int = 0, pair_of_scales: bool = False) -> Builder:
    """Conv, Add and Concat whose QuantizeLinear nodes state their type by attribute, zero point, both or neither."""

    def build(m: OnnxMaker) -> onnx.ModelProto:
        m.opset = 21

        def pair(value: str, scale: float) -> str:
            names = [m.constant(np.float32(scale))]
            if zero is not None:
                name = m.fresh("zero")
                m.stored.append(helper.make_tensor(name, kind, (), [zero]))
                names.append(name)
            more = {"output_dtype": output_dtype} if output_dtype else {}
            (q,) = m.node("QuantizeLinear", [value, *names], **more)
            return m.node("DequantizeLinear", [q, *names])[0]

        x = pair(given(m, "x", (1, 3, 6, 6)), 1 / 64)
        weight, _ = m.weights((3, 3, 3, 3), 0)
        y = pair(m.node("Conv", [x, weight], pads=[1] * 4)[0], 0.03)
        total = pair(m.node("Add", [x, y])[0], 0.04)
        m.outputs.append(pair(m.node("Concat", [total, x], axis=1)[0], 0.05))
        return m.opened()

    return build


def _blocked(m: OnnxMaker) -> onnx.ModelProto:
    m.opset = 21
    x = m.conv(m.image(3, 6, 6), 8)
    names = [m.constant(np.full((1, 2, 6, 6), 0.01, np.float32)), m.constant(np.zeros((1, 2, 6, 6), np.uint8))]
    (value,) = m.node("Sigmoid", [x.name])
    (q,) = m.node("QuantizeLinear", [value, *names], axis=1, block_size=4)
    m.outputs += m.node("DequantizeLinear", [q, *names], axis=1, block_size=4)
    return m.opened()


def _wide(kind: type, domain: str = "") -> Builder:
    """16-bit activations, as tools write them for accuracy."""

    def build(m: OnnxMaker) -> onnx.ModelProto:
        m.opset = 17 if domain else 21
        x = given(m, "x", (1, 3, 6, 6))
        middle = 0 if kind == np.int16 else 1 << 15
        value = x
        for scale in (1 / 4096, 1 / 2048):
            names = [m.constant(np.float32(scale)), m.constant(kind(middle))]
            (q,) = m.node("QuantizeLinear", [value, *names], domain=domain)
            (value,) = m.node("DequantizeLinear", [q, *names], domain=domain)
            if scale > 1 / 3000:
                break
            weight, _ = m.weights((3, 3, 3, 3), 0)
            (value,) = m.node("Conv", [value, weight], pads=[1] * 4)
        m.outputs.append(value)
        return m.opened()

    return build


def _mixed(m: OnnxMaker) -> onnx.ModelProto:
    """int8 and uint8 activations in one model."""
    a = m.conv(m.image(3, 6, 6), 8)
    m.dtype = "int8"
    b = m.conv(a, 8)
    m.dtype = "uint8"
    return finished(m, m.binary("Add", a, b))


def _of_microsoft(dtype: str) -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        m.dtype = dtype
        model = finished(m, network(m))
        for node in model.graph.node:
            if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
                node.domain = "com.microsoft"
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return model

    return build


def _double(scale: float, zero: int) -> Builder:
    """A QuantizeLinear directly after a DequantizeLinear."""

    def build(m: OnnxMaker) -> onnx.ModelProto:
        x = m.conv(m.image(3, 6, 6), 8)
        return finished(m, m.conv(m.pair(x.name, x.shape, x.scale * scale, zero), 4))

    return build


def _of_opset(opset: int, dtype: str = "uint8") -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        m.opset, m.dtype = opset, dtype
        x = m.image(3, 8, 8)
        if opset < 13:  # one scale for all weights
            names = [stored(m, (8, 3, 3, 3)), m.constant(np.float32(0.01)), m.constant(np.int8(0))]
            (value,) = m.node("Conv", [x.name, *m.node("DequantizeLinear", names)], pads=[1] * 4)
            return finished(m, m.maxpool(m.pair(value, (1, 8, 8, 8), 0.05)))
        return finished(m, network(m))

    return build


def _integer_input(kind: int, nhwc: bool) -> Builder:
    """An input of bytes, as TensorFlow's converters write it, with channels last if `nhwc`."""

    def build(m: OnnxMaker) -> onnx.ModelProto:
        shape = (1, 6, 6, 3) if nhwc else (1, 3, 6, 6)
        value = given(m, "x", shape, kind)
        if nhwc:
            (value,) = m.node("Transpose", [value], perm=[0, 3, 1, 2])
        names = parameters(m, 1 / 64, 3, np.uint8 if kind == TensorProto.UINT8 else np.int8)
        m.dtype = "uint8" if kind == TensorProto.UINT8 else "int8"
        (image,) = m.node("DequantizeLinear", [value, *names])
        weight, _ = m.weights((4, 3, 3, 3), 0)
        (value,) = m.node("Conv", [image, weight], pads=[1] * 4)
        return finished(m, m.pair(value, (1, 4, 6, 6), 0.05))

    return build


MODELS: dict[str, Builder] = {
    **{f"opset {v}": _of_opset(v) for v in (10, 11, 12, 13, 19, 21, 23, 25)},
    **{f"opset {v}, int8": _of_opset(v, "int8") for v in (12, 17, 21)},
    "output_dtype uint8": _typed(TensorProto.UINT8),
    "output_dtype int8": _typed(TensorProto.INT8),
    "zero point int8": _typed(0, 3, TensorProto.INT8),
    "zero point uint8": _typed(0, 120, TensorProto.UINT8),
    "output_dtype and zero point int8": _typed(TensorProto.INT8, -5, TensorProto.INT8),
    "neither output_dtype nor zero point": _typed(),
    "output_dtype against zero point": _typed(TensorProto.INT8, 3, TensorProto.UINT8),
    "output_dtype int16": _typed(TensorProto.INT16),
    "output_dtype uint16": _typed(TensorProto.UINT16),
    "output_dtype int4": _typed(TensorProto.INT4),
    "output_dtype float8": _typed(TensorProto.FLOAT8E4M3FN),
    "zero point int4": _typed(0, 0, TensorProto.INT4),
    "blocked activations": _blocked,
    "int16 activations": _wide(np.int16),
    "uint16 activations": _wide(np.uint16),
    "uint16 activations of com.microsoft": _wide(np.uint16, "com.microsoft"),
    "int8 and uint8 activations": _mixed,
    "com.microsoft pairs": _of_microsoft("uint8"),
    "com.microsoft pairs, int8": _of_microsoft("int8"),
    "double pair": _double(1.5, 20),
    "double pair, same scale": _double(1.0, 131),
    "uint8 input": _integer_input(TensorProto.UINT8, nhwc=False),
    "int8 input": _integer_input(TensorProto.INT8, nhwc=False),
    "uint8 input, NHWC": _integer_input(TensorProto.UINT8, nhwc=True),
    "int8 input, NHWC": _integer_input(TensorProto.INT8, nhwc=True),
}
