"""Builds small quantized ONNX models with random weights and scales that keep every tensor non-constant."""

import random
from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"uint8": (np.uint8, TensorProto.UINT8, 0, 255), "int8": (np.int8, TensorProto.INT8, -128, 127)}


@dataclass(frozen=True)
class Value:
    """A dequantized value: its name, shape and scale."""

    name: str
    shape: tuple[int, ...]
    scale: float


@dataclass
class OnnxMaker:
    """A QDQ model while it grows. Every operator is followed by a QuantizeLinear, DequantizeLinear pair."""

    rng: random.Random
    dtype: str = "uint8"
    opset: int = 17
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    stored: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    count: int = 0

    def fresh(self, kind: str) -> str:
        """A name that is not taken."""
        self.count += 1
        return f"{kind}{self.count}"

    def constant(self, array: object, kind: str = "const") -> str:
        """Store an array."""
        name = self.fresh(kind)
        self.stored.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op: str, inputs: list[str], outputs: list[str] | None = None, **attributes: object) -> list[str]:
        """A node; gives its outputs."""
        outputs = outputs or [self.fresh(op.lower())]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=self.fresh(f"{op}_node"), **attributes))
        return outputs

    def scale(self, low: float = 0.01, high: float = 0.1) -> float:
        """A random fp32 scale."""
        return float(np.float32(self.rng.uniform(low, high)))

    def zero_point(self) -> int:
        """A random zero point, often one at an end of the range."""
        _, _, low, high = TYPES[self.dtype]
        return self.rng.choice([low, high, (low + high + 1) // 2, self.rng.randint(low, high)])

    def pair(self, value: str, shape: tuple[int, ...], scale: float, zero: int | None = None) -> Value:
        """Quantize and dequantize a float value."""
        kind = TYPES[self.dtype][0]
        parameters = [
            self.constant(np.float32(scale)),
            self.constant(kind(self.zero_point() if zero is None else zero)),
        ]
        (quantized,) = self.node("QuantizeLinear", [value, *parameters])
        (result,) = self.node("DequantizeLinear", [quantized, *parameters])
        return Value(result, shape, scale)

    def image(self, channels: int, height: int, width: int, zero: int | None = None, scale: float = 1 / 255) -> Value:
        """A float input and its pair."""
        name = self.fresh("image")
        shape = (1, channels, height, width)
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self.pair(name, shape, scale, TYPES[self.dtype][2] if zero is None else zero)

    def weights(
        self, shape: tuple[int, ...], axis: int, kind: type[np.generic] = np.int8, zero: bool = False
    ) -> tuple[str, np.ndarray]:
        """Dequantized random weights with a scale per channel; gives them and the scales."""
        info = np.iinfo(kind)
        noise = np.random.default_rng(self.rng.getrandbits(32))
        values = noise.integers(info.min, info.max, shape, endpoint=True).astype(kind)
        scales = noise.uniform(0.001, 0.01, shape[axis]).astype(np.float32)
        zeros = np.full(shape[axis], 128 if kind == np.uint8 else 0, kind)
        if zero:
            zeros = noise.integers(info.min + 1, info.max, shape[axis]).astype(kind)
        names = [self.constant(values, "weight"), self.constant(scales), self.constant(zeros)]
        return self.node("DequantizeLinear", names, axis=axis)[0], scales

    def bias(self, scales: np.ndarray, x_scale: float, reach: int = 4000) -> str:
        """A dequantized int32 bias."""
        noise = np.random.default_rng(self.rng.getrandbits(32))
        values = noise.integers(-reach, reach, scales.size).astype(np.int32)
        scale = (np.float32(x_scale) * scales).astype(np.float32)
        names = [self.constant(values, "bias"), self.constant(scale), self.constant(np.zeros(scales.size, np.int32))]
        return self.node("DequantizeLinear", names, axis=0)[0]

    def conv(
        self,
        x: Value,
        channels: int,
        kernel: int = 3,
        stride: int = 1,
        group: int = 1,
        activation: str | None = None,
        **more: object,
    ) -> Value:
        """A convolution, with an activation before the pair if one is named; `more` goes to the node."""
        chosen = {k: more.pop(k) for k in ("kind", "zero") if k in more}
        weight, scales = self.weights((channels, x.shape[1] // group, kernel, kernel), 0, **chosen)  # type: ignore[arg-type]  # checked by numpy
        inputs = [x.name, weight, self.bias(scales, x.scale)]
        attributes = {
            "kernel_shape": [kernel, kernel],
            "pads": [kernel // 2] * 4,
            "strides": [stride, stride],
            "group": group,
            **more,
        }
        (value,) = self.node("Conv", inputs, **attributes)
        rows, columns = ((s + 2 * (kernel // 2) - kernel) // stride + 1 for s in x.shape[2:])
        spread = x.scale * 74 * float(scales.mean()) * 74 * sqrt(x.shape[1] // group * kernel * kernel)
        if activation:
            (value,) = self.node(activation, [value])
        return self.pair(
            value, (1, channels, rows, columns), float(np.float32(self.rng.uniform(1.5, 4) * spread / 128))
        )

    def unary(self, op: str, x: Value, scale: float | None = None, **attributes: object) -> Value:
        """An elementwise operator."""
        (value,) = self.node(op, [x.name], **attributes)
        return self.pair(value, x.shape, scale or x.scale)

    def silu(self, x: Value) -> Value:
        """Sigmoid times itself, each with its pair."""
        sigmoid = self.unary("Sigmoid", x, 1 / 255)
        return self.binary("Mul", x, sigmoid, x.scale * self.rng.uniform(0.5, 1.0))

    def binary(self, op: str, a: Value, b: Value, scale: float | None = None) -> Value:
        """An elementwise operator of two tensors."""
        (value,) = self.node(op, [a.name, b.name])
        return self.pair(value, a.shape, float(np.float32(scale or (a.scale + b.scale) * self.rng.uniform(0.5, 1.1))))

    def concat(self, parts: list[Value]) -> Value:
        """A Concat along channels."""
        (value,) = self.node("Concat", [p.name for p in parts], axis=1)
        shape = (1, sum(p.shape[1] for p in parts), *parts[0].shape[2:])
        return self.pair(value, shape, max(p.scale for p in parts))

    def split(self, x: Value) -> tuple[Value, Value]:
        """Two parts of the channels with pairs of their own."""
        first = x.shape[1] // 2
        names = self.node(
            "Split",
            [x.name, self.constant(np.array([first, x.shape[1] - first]))],
            [self.fresh("part"), self.fresh("part")],
            axis=1,
        )
        rest = x.shape[2:]
        return self.pair(names[0], (1, first, *rest), x.scale), self.pair(
            names[1], (1, x.shape[1] - first, *rest), x.scale
        )

    def maxpool(self, x: Value, kernel: int = 3, stride: int = 1) -> Value:
        """A pool without a pair: its result keeps the input's scale."""
        (value,) = self.node(
            "MaxPool", [x.name], kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4, strides=[stride] * 2
        )
        return Value(
            value, (*x.shape[:2], *((s + 2 * (kernel // 2) - kernel) // stride + 1 for s in x.shape[2:])), x.scale
        )

    def resize(self, x: Value, factor: int = 2) -> Value:
        """Nearest-neighbor enlargement with a pair, without which onnxruntime runs what follows in float."""
        scales = self.constant(np.array([1, 1, factor, factor], np.float32))
        modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        (value,) = self.node("Resize", [x.name, "", scales], **modes)
        return self.pair(value, (*x.shape[:2], x.shape[2] * factor, x.shape[3] * factor), x.scale)

    def output(self, *values: Value) -> None:
        """Make values outputs of the model."""
        self.outputs += [v.name for v in values]

    def model(self) -> onnx.ModelProto:
        """The finished model."""
        return onnx.shape_inference.infer_shapes(self.opened())

    def opened(self, functions: tuple[onnx.FunctionProto, ...] = ()) -> onnx.ModelProto:
        """The model without inferred shapes, as many exporters write it."""
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "made", self.inputs, outputs, self.stored)
        domains = {n.domain for n in (*self.nodes, *(n for f in functions for n in f.node))} - {""}
        opsets = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, 1) for d in sorted(domains))]
        version = 10 if self.opset > 20 else 8
        return helper.make_model(graph, opset_imports=opsets, ir_version=version, functions=list(functions))
