"""Quantization parameters of QuantizeLinear and DequantizeLinear nodes, by the rules of every opset."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import ModelError, UnsupportedError
from intloom.compiler.importer import STANDARD, Array, Model, OnnxNode
from intloom.compiler.importer.model import INTEGER_RANGES, NUMBERED_TYPES
from intloom.compiler.refusals import Refusal

QUANTIZE = "QuantizeLinear"
DEQUANTIZE = "DequantizeLinear"


def is_quantize(node: OnnxNode) -> bool:
    """Whether the node is ONNX's QuantizeLinear; other domains may use the name for something else."""
    return node.op == QUANTIZE and node.domain == STANDARD


def is_dequantize(node: OnnxNode) -> bool:
    """Whether the node is ONNX's DequantizeLinear."""
    return node.op == DEQUANTIZE and node.domain == STANDARD


def stored_value(model: Model, value: str) -> str:
    """The integers from which a DequantizeLinear makes a float value; the value itself if none makes it."""
    node = model.producers.get(value)
    return node.inputs[0] if node is not None and is_dequantize(node) else value


def stored_constant(model: Model, value: str) -> Array | None:
    """The constant integers from which a DequantizeLinear makes a float value; None if there are none."""
    stored = stored_value(model, value)
    return None if stored == value else model.constant(stored)


@dataclass(frozen=True, eq=False)
class QParams:
    """Quantization parameters: a stored integer represents `(value - zero_point) * scale`.

    `scale` and `zero_point` are scalars (per tensor), vectors along `axis` (per axis), or have the tensor's rank
    (blocked: one for every `block` values along `axis`).
    """

    scale: NDArray[np.float32]
    zero_point: NDArray[np.int32]
    dtype: str
    axis: int = 0
    block: int = 0

    @property
    def per_tensor(self) -> bool:
        """Whether one scale applies to the whole tensor."""
        return self.scale.ndim == 0

    @property
    def unsigned(self) -> bool:
        """Whether the stored type is uint8."""
        return self.dtype == "uint8"

    @property
    def zero_int8(self) -> int:
        """Zero point of an 8-bit tensor after conversion to int8."""
        # The integer graph is int8 throughout. uint8 tensors are shifted by 128, which leaves `value - zero_point`
        # unchanged.
        return int(self.zero_point) - (128 if self.unsigned else 0)

    def same(self, other: QParams) -> bool:
        """Whether both represent every stored integer as the same real number."""
        return (
            self.dtype == other.dtype
            and self.scale.shape == other.scale.shape
            and bool(np.all(self.scale == other.scale))
            and bool(np.all(self.zero_point == other.zero_point))
            and (self.per_tensor or (self.axis, self.block) == (other.axis, other.block))
        )

    def spread(self, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Scale and zero point, reshaped to broadcast against a tensor of this shape."""
        if self.per_tensor:
            return self.scale, self.zero_point
        if self.block:
            size = shape[self.axis]
            # The last block may be partial (opset 21: ceil(D / block_size) scales), so the repeated scales are cut to
            # the size.
            return tuple(  # type: ignore[return-value]  # a generator of exactly two arrays
                np.take(np.repeat(v, self.block, axis=self.axis), range(size), axis=self.axis)
                for v in (self.scale, self.zero_point)
            )
        form = [1] * len(shape)
        form[self.axis] = -1
        return self.scale.reshape(form), self.zero_point.reshape(form)


def read_scale(model: Model, node: OnnxNode) -> QParams:
    """Read and check scales and stored type of a Q or DQ node, which may be no integer type; zero points are 0."""
    scale = model.constant(node.input(1))
    if scale is None:
        raise UnsupportedError(
            f"node {node.name!r}: its scale must be a constant: quantize the model statically", Refusal.DYNAMIC.number
        )
    scale = np.asarray(scale).astype(np.float32)
    if not (np.all(np.isfinite(scale)) and np.all(scale > 0)):
        raise ModelError(f"node {node.name!r}: every scale must be positive and finite: quantize the model again")
    dtype = _stored_type(model, node)
    # Exporters write the scale of a whole tensor as a scalar or as a vector of one value.
    if scale.size == 1 and scale.ndim <= 1:
        return _without_zero_point(scale.reshape(()), dtype)
    return _with_axis(model, node, scale, dtype)


def read_qparams(model: Model, node: OnnxNode) -> QParams:
    """Read and check the quantization parameters of a Q or DQ node.

    Raises
    ------
    UnsupportedError
        Scale or zero point is not constant, or the stored type is not a supported integer type.
    ModelError
        Zero point and `output_dtype` have different types, or a shape is invalid.
    """
    scale = read_scale(model, node)
    if scale.dtype not in INTEGER_RANGES:
        raise UnsupportedError(
            f"node {node.name!r}: its type must be an integer type, not {scale.dtype or 'unknown'}: use int8 or uint8",
            Refusal.TYPE.number,
        )
    return replace(scale, zero_point=_zero_point(model, node, scale.scale))


def _without_zero_point(scale: NDArray[np.float32], dtype: str, axis: int = 0, block: int = 0) -> QParams:
    return QParams(scale, np.zeros(scale.shape, np.int32), dtype, axis, block)


def check_parameters(model: Model) -> None:
    """Check the parameters of all Q and DQ nodes, also of those that the host runs.

    Raises
    ------
    ModelError
        The parameters of a node contradict each other or its input.
    """
    for node in model.nodes:
        if is_quantize(node) or is_dequantize(node):
            with contextlib.suppress(UnsupportedError):  # valid, but only the host runs it
                read_qparams(model, node)
            shape = model.shape(node.input(1))
            if shape is not None and len(shape) > 1 and not node.integer("block_size", 0):
                raise ModelError(f"node {node.name!r}: its scale must be a scalar or a vector, not of shape {shape}")


def _zero_point(model: Model, node: OnnxNode, scale: NDArray[np.float32]) -> NDArray[np.int32]:
    name = node.input(2)
    if not name:
        return np.zeros(scale.shape, dtype=np.int32)
    zero = model.constant(name)
    if zero is None:
        raise UnsupportedError(
            f"node {node.name!r}: its zero point must be a constant: quantize the model statically",
            Refusal.DYNAMIC.number,
        )
    # Equal sizes are enough: a scalar scale may come with a zero point that is a vector of one value.
    if zero.size != scale.size or (zero.ndim > 1 and scale.ndim <= 1):
        raise ModelError(f"node {node.name!r}: zero point must have the scale's shape {scale.shape}, not {zero.shape}")
    return np.asarray(zero).astype(np.int32).reshape(scale.shape)


def _stored_type(model: Model, node: OnnxNode) -> str:
    # The input has the stored type. Its zero point has the same type by the standard, and helps where shape inference
    # has no type for the input.
    if is_dequantize(node):
        return model.dtype(node.input(0)) or model.dtype(node.input(2))
    # QuantizeLinear since opset 21: the zero point's type, else a non-zero `output_dtype`, else uint8. A conflict of
    # both is an invalid model.
    wanted = NUMBERED_TYPES.get(node.integer("output_dtype", 0), "")
    if not node.input(2):
        return wanted or "uint8"
    given = model.dtype(node.input(2))
    if given and wanted and given != wanted:
        raise ModelError(
            f"node {node.name!r}: output_dtype must equal the zero point's type {given}, not {wanted}: leave one out"
        )
    # A zero point of unknown type without `output_dtype` leaves the type unknown; uint8 would be a guess.
    return given or wanted


def _with_axis(model: Model, node: OnnxNode, scale: NDArray[np.float32], dtype: str) -> QParams:
    shape = model.shape(node.input(0))
    if shape is None:
        raise UnsupportedError(
            f"node {node.name!r}: the shape of {node.input(0)!r} must be known: export the model with fixed sizes",
            Refusal.OPEN_SIZE.number,
        )
    # The default of QuantizeLinear and DequantizeLinear is axis 1; negative axes count from the end.
    axis = node.integer("axis", 1)
    if not -len(shape) <= axis < len(shape):
        raise ModelError(f"node {node.name!r}: axis must be from {-len(shape)} to {len(shape) - 1}, not {axis}")
    axis %= len(shape)
    if scale.ndim == 1:
        if scale.size != shape[axis]:
            raise ModelError(f"node {node.name!r}: it must have {shape[axis]} scales, one per slice, not {scale.size}")
        return _without_zero_point(scale, dtype, axis)
    block = node.integer("block_size", 0)
    # Blocked quantization (opset 21): the last block along the axis may be partial.
    wanted = tuple(-(-n // block) if i == axis and block > 0 else n for i, n in enumerate(shape))
    if block <= 0 or scale.shape != wanted:
        raise ModelError(f"node {node.name!r}: blocked scales must have shape {wanted}, not {scale.shape}")
    return _without_zero_point(scale, dtype, axis, block)


def quantize(values: Array, params: QParams) -> NDArray[np.int32]:
    """`saturate(rint(x / scale) + zero_point)`, with an fp32 division and ties to even."""
    scale, zero = params.spread(values.shape)
    low, high = INTEGER_RANGES[params.dtype]
    # The order is the standard's: divide, round, then add the zero point, then saturate. A product with the
    # reciprocal differs next to ties. float64 keeps int32 values exact.
    rounded = np.rint(values.astype(np.float32) / scale).astype(np.float64) + zero
    return np.clip(rounded, low, high).astype(np.int32)


def dequantize(values: Array, params: QParams) -> NDArray[np.float32]:
    """`(x - zero_point) * scale` in fp32."""
    scale, zero = params.spread(values.shape)
    # The difference is exact before the only fp32 rounding; int8 or uint8 arithmetic would wrap.
    return ((values.astype(np.int64) - zero).astype(np.float32) * scale).astype(np.float32)


def real_constant(model: Model, value: str) -> Array | None:
    """The values of a constant, which may be quantized; None if it is none."""
    node = model.producers.get(value)
    if node is None or not is_dequantize(node):
        return model.constant(value)
    stored = model.constant(node.input(0))
    return None if stored is None else dequantize(stored, read_qparams(model, node))
