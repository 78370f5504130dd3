"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from intloom.compiler.fold.patterns.qparams import dequantize, quantize, read_qparams, read_scale
from intloom.compiler.importer import Constant
from intloom.compiler.importer.model import INTEGER_RANGES
from intloom.onnx_nodes.registry import Evaluation, evaluates

_FLOATS: Mapping[str, Any] = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}
_LARGEST: Mapping[str, float] = {"float8e4m3fn": 448.0, "float8e5m2": 57344.0, "float4e2m1": 6.0}
_STORED: Mapping[str, Any] = {
    "int2": np.int8, "uint2": np.uint8, "int4": np.int8, "uint4": np.uint8, "int8": np.int8, "uint8": np.uint8,
    "int16": np.int16, "uint16": np.uint16, "int32": np.int32,
}  # fmt: skip
_UINT8_STEPS = np.float32(255)


@evaluates("QuantizeLinear")
def quantize_linear(e: Evaluation) -> tuple[Constant, ...]:
    """Integers by the rules of `fold.patterns.qparams`; small floats by a saturating cast of the quotient."""
    model, x = e.bound, e.operand(0).array
    scale = read_scale(model, e.node)
    if scale.dtype in _FLOATS:
        kind, most = _FLOATS[scale.dtype], _LARGEST[scale.dtype]
        quotient = x.astype(np.float32) / scale.spread(x.shape)[0]
        return (Constant(np.clip(quotient, -most, most).astype(kind), scale.dtype),)
    params = read_qparams(model, e.node)
    return (Constant(quantize(x, params).astype(_STORED[params.dtype]), params.dtype),)


@evaluates("DequantizeLinear")
def dequantize_linear(e: Evaluation) -> tuple[Constant, ...]:
    """`(x - zero_point) * scale`, in the type of the scale."""
    stored, kind = e.operand(0), e.operand(1)
    if stored.dtype in INTEGER_RANGES:
        values = dequantize(stored.array, read_qparams(e.bound, e.node))
    else:
        values = stored.array.astype(np.float32) * read_scale(e.bound, e.node).spread(stored.array.shape)[0]
    return (Constant(values.astype(kind.array.dtype), kind.dtype),)


@evaluates("DynamicQuantizeLinear")
def dynamic_quantize_linear(e: Evaluation) -> tuple[Constant, ...]:
    """uint8 quantization with scale and zero point from the range of the values, extended to include zero."""
    x = e.operand(0).array.astype(np.float32)
    least, most = np.minimum(x.min(), np.float32(0)), np.maximum(x.max(), np.float32(0))
    scale = np.float32((most - least) / _UINT8_STEPS)
    low, high = INTEGER_RANGES["uint8"]
    zero = int(np.clip(np.rint(-least / scale), low, high)) if scale else 0
    values = np.clip(np.rint(x / scale) + zero, low, high) if scale else np.full(x.shape, zero)
    stored = Constant(values.astype(np.uint8), "uint8")
    return stored, Constant(np.array(scale), "float"), Constant(np.array(zero, np.uint8), "uint8")
