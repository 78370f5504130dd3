"""Builder of float ONNX graphs, with node names as given by PyTorch's exporter."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8


@dataclass(frozen=True)
class Value:
    """A tensor in the graph being built: its name and its channels."""

    name: str
    channels: int


class Target(NamedTuple):
    """Mean and standard deviation that a layer's output gets."""

    mean: float = 1.4
    spread: float = 1.0
    per_channel: bool = True
    """Whether statistics are taken for each channel; a layer with one value per image takes them over all."""
    slope: float = 0.0
    """Added to the mean from one channel to the next within each group of `period` channels."""
    period: int = 1


@dataclass(frozen=True)
class Layer:
    """A layer with weights, and the statistics of its output."""

    output: str
    weight: str
    bias: str
    channel_axis: int
    """Axis of the output channels in the weight."""
    target: Target
    rank: int = 4
    output_axis: int = 1
    """Axis of the channels in the output."""


_CENTERED = Target(0.0)


@dataclass
class Builder:
    """A graph under construction; `seed` and a layer's name determine its weights. Reshapes keep `batch`."""

    name: str
    seed: int
    batch: int = 1
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, NDArray[Any]] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)

    def input(self, name: str, height: int, width: int, channels: int = 3) -> Value:
        """Add a float image input."""
        shape = [self.batch, channels, height, width]
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return Value(name, channels)

    def indices(self, name: str, length: int) -> Value:
        """Add an int64 input with a number for each token."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, [self.batch, length]))
        return Value(name, length)

    def output(self, value: Value, name: str, shape: Sequence[int]) -> None:
        """Make `value` a graph output called `name`."""
        for node in self.nodes:
            for names in (node.input, node.output):
                for i, other in enumerate(names):
                    names[i] = name if other == value.name else other
        # The layer's record must refer to the new name too.
        self.layers = [Layer(**{**vars(k), "output": name}) if k.output == value.name else k for k in self.layers]
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))

    def op(self, name: str, kind: str, inputs: Sequence[Value | str], channels: int, **attributes: Any) -> Value:
        """Add a node with one output, whose name derives from the node's as in exported models."""
        names = [v.name if isinstance(v, Value) else v for v in inputs]
        output = f"{name}_output_0"
        self.nodes.append(helper.make_node(kind, names, [output], name=name, **attributes))
        return Value(output, channels)

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """An initializer; returns its name."""
        self.weights[name] = array
        return name

    def parameter(self, name: str, shape: tuple[int, ...], spread: float) -> str:
        """Random values that no layer multiplies by: embeddings and positions."""
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        return self.constant(name, (spread * rng.normal(size=shape)).astype(np.float32))

    def conv(
        self,
        path: str,
        x: Value,
        channels: int,
        kernel: int = 1,
        stride: int | tuple[int, int] = 1,
        group: int = 1,
        *,
        mean: float = 1.4,
        target: Target | None = None,
        padded: bool = True,
    ) -> Value:
        """A convolution with bias, named `path/Conv`; its output gets the given mean, or the statistics of `target`.

        A pair of strides is vertical, horizontal. Padding is `same`, or none with `padded` false.
        """
        shape = (channels, x.channels // group, kernel, kernel)
        weight, bias = self._layer(path, shape, channels)
        pads = [kernel // 2 if padded else 0] * 4
        strides = [stride] * 2 if isinstance(stride, int) else list(stride)
        y = self.op(
            f"{path}/Conv", "Conv", [x, weight, bias], channels,
            kernel_shape=[kernel] * 2, strides=strides, pads=pads, dilations=[1, 1], group=group,
        )  # fmt: skip
        self.layers.append(Layer(y.name, weight, bias, 0, target or Target(mean)))
        return y

    def depthwise(
        self, path: str, x: Value, kernel: int = 3, stride: int | tuple[int, int] = 1, *, mean: float = 1.4
    ) -> Value:
        """A depthwise convolution; see `conv`."""
        return self.conv(path, x, x.channels, kernel, stride, x.channels, mean=mean)

    def conv_transpose(self, path: str, x: Value, channels: int, *, mean: float = 0.5) -> Value:
        """A transposed 2x2 convolution of stride 2 without padding, named `path/ConvTranspose`."""
        weight, bias = self._layer(path, (x.channels, channels, 2, 2), channels)
        y = self.op(
            f"{path}/ConvTranspose", "ConvTranspose", [x, weight, bias], channels,
            kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4, dilations=[1, 1], group=1,
        )  # fmt: skip
        self.layers.append(Layer(y.name, weight, bias, 1, Target(mean)))
        return y

    def gemm(self, path: str, x: Value, channels: int, *, mean: float = 0.0, spread: float = 2.0) -> Value:
        """A fully connected layer on a flat tensor, named `path/Gemm`."""
        weight, bias = self._layer(path, (channels, x.channels), channels)
        y = self.op(f"{path}/Gemm", "Gemm", [x, weight, bias], channels, alpha=1.0, beta=1.0, transB=1)
        self.layers.append(Layer(y.name, weight, bias, 0, Target(mean, spread, per_channel=False), rank=2))
        return y

    def linear(self, path: str, x: Value, channels: int, target: Target = _CENTERED) -> Value:
        """A fully connected layer on [batch, tokens, channels], exported as MatMul and Add."""
        weight, bias = self._layer(path, (x.channels, channels), channels)
        y = self.op(f"{path}/MatMul", "MatMul", [x, weight], channels)
        y = self.op(f"{path}/Add", "Add", [bias, y], channels)
        self.layers.append(Layer(y.name, weight, bias, 1, target, rank=3, output_axis=2))
        return y

    def reshape(self, name: str, x: Value, shape: Sequence[int], channels: int, groups: int = 1) -> Value:
        """A Reshape to [batch * groups, *shape]."""
        wanted = self.constant(f"{name}/shape", np.array([self.batch * groups, *shape], np.int64))
        return self.op(name, "Reshape", [x, wanted], channels)

    def transpose(self, name: str, x: Value, perm: Sequence[int], channels: int) -> Value:
        """A Transpose."""
        return self.op(name, "Transpose", [x], channels, perm=list(perm))

    def split(self, name: str, x: Value, sizes: Sequence[int], axis: int = 1) -> list[Value]:
        """A Split into parts of the given sizes; with another axis than 1 the parts keep the channels."""
        stored = self.constant(f"{name}/sizes", np.array(sizes, np.int64))
        channels = [size if axis == 1 else x.channels for size in sizes]
        parts = [self.op(name, "Split", [x, stored], channels[0], axis=axis)]
        # `op` names one output.
        for number, size in enumerate(channels[1:], 1):
            parts.append(Value(f"{name}_output_{number}", size))
            self.nodes[-1].output.append(parts[-1].name)
        return parts

    def _layer(self, path: str, shape: tuple[int, ...], channels: int) -> tuple[str, str]:
        rng = np.random.default_rng([self.seed, zlib.crc32(path.encode())])
        fan_in = int(np.prod(shape)) // channels
        stem = path.strip("/").replace("/", ".")
        weight = self.constant(f"{stem}.weight", (rng.normal(size=shape) / np.sqrt(fan_in)).astype(np.float32))
        bias = self.constant(f"{stem}.bias", np.zeros(channels, np.float32))
        return weight, bias

    def finish(self) -> onnx.ModelProto:
        """The checked model with inferred shapes."""
        initializers = [numpy_helper.from_array(a, n) for n, a in self.weights.items()]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, initializers)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="intloom"
        )
        onnx.checker.check_model(model)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)
