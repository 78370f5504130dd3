"""Constant weights and biases in the array's format: nine-bit weights, int32 bias, mantissa and shift per channel."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import EncodingError, ModelError
from intloom.compiler.fold.patterns.qparams import QParams, is_dequantize, read_qparams
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.importer import Model
from intloom.compiler.ir import Tensor
from intloom.compiler.ir.node import Pair
from intloom.compiler.ir.ops.conv import MOST_SPAN, ArrayWeights, weight_spans
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Scale, scale_from_float

INT32_MAX = (1 << 31) - 1
_FAR = 1 << 40
"""Clip value for biases: larger than int32, and small enough for int64 sums."""


_PIXEL = Window((1, 1), (1, 1), (1, 1), (0, 0, 0, 0))


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights minus their zero points, with one scale or one for each output channel, and the window that they fill."""

    values: NDArray[np.int32]
    """For the array: [out, in / group, kernel rows, kernel columns]."""
    scale: NDArray[np.float32]
    window: Window = _PIXEL
    group: int = 1
    extra: Pair | None = None
    """Of a transposed convolution: rows and columns at the end of the result."""


def read_weights(model: Model, value: str, channel_axis: int = 0) -> Weights:
    """Read the quantized weights of a float value; scales per channel must be along `channel_axis`."""
    node = model.producers.get(value)
    array = model.constant(node.inputs[0]) if node is not None and is_dequantize(node) else None
    if node is not None and is_dequantize(node) and array is None:
        raise Refusal.WEIGHTS(
            "both its operands are computed, but the array multiplies by constants only", "run it on the host"
        )
    if node is None or array is None:
        raise Refusal.WEIGHTS(f"the weights {value!r} are not quantized constants", "quantize the weights to int8")
    params = read_qparams(model, node)
    if params.dtype not in ("int8", "uint8", "int4", "uint4", "int2", "uint2"):
        raise Refusal.WEIGHTS(f"the weights {value!r} are stored as {params.dtype}", "quantize the weights to int8")
    # One mantissa and shift per output channel is all that the array has.
    if params.block:
        raise Refusal.WEIGHTS(f"the weights {value!r} have blocked scales", "quantize the weights per output channel")
    if not params.per_tensor and params.axis != channel_axis:
        raise Refusal.WEIGHTS(
            f"the scales of weights {value!r} are along axis {params.axis}",
            f"quantize along axis {channel_axis}, per output channel",
        )
    # Weights then need up to nine bits, see `array_weights`.
    _, zero = params.spread(array.shape)
    return Weights(array.astype(np.int32) - zero, params.scale)


def read_bias(model: Model, value: str, x: QParams, weight_scale: NDArray[np.float32]) -> NDArray[np.int64] | None:
    """Read a bias as int32; a float bias is quantized with the accumulator's scale."""
    if not value:
        return None
    unit = (x.scale * weight_scale).astype(np.float32)
    node = model.producers.get(value)
    stored = model.constant(node.inputs[0]) if node is not None and is_dequantize(node) else None
    if node is not None and stored is not None:
        params = read_qparams(model, node)
        if params.zero_point.any():
            raise Refusal.BIAS(
                f"the bias {value!r} has a zero point", "give the bias the zero point 0, as the standard says"
            )
        # Exporters round the product of both scales in different precisions, hence the tolerance below. Layers that
        # share a bias have the scale of the first one, which does not matter for zeros.
        fits = 1 in (params.scale.size, unit.size) or params.scale.size == unit.size
        alike = fits and np.allclose(params.scale, unit, rtol=1e-4, atol=0)
        if params.dtype == "int32" and (alike or not stored.any()):
            return stored.astype(np.int64).ravel()
        raise Refusal.BIAS(
            f"the bias {value!r} is {params.dtype} with scales that are not the product of input and weight scale",
            "quantize the bias to int32 at input scale times weight scale, or leave it float",
        )
    values = model.constant(value)
    if values is None:
        raise Refusal.BIAS(f"the bias {value!r} is not a constant", "use a constant bias")
    if 1 not in (values.size, unit.size) and values.size != unit.size:
        raise Refusal.INVALID(
            f"the bias {value!r} has {values.size} values for {unit.size} channels", "correct the model"
        )
    # The conversion of NaN to an integer below is undefined and raises no error.
    if np.isnan(values).any():
        raise Refusal.INVALID(f"the bias {value!r} has values that are no numbers", "correct the model")
    # The standard's bias has the scale of the accumulator: input scale times weight scale, with zero point 0.
    steps = np.rint(values.astype(np.float64).ravel() / unit)
    return np.clip(steps, -_FAR, _FAR).astype(np.int64)


def array_bias(
    weights: Weights, bias: NDArray[np.int64] | None, zero_point: int, *, name: str, wraps: bool
) -> NDArray[np.int32]:
    """The bias of sums over `x`, which includes the zero point of the input.

    That of a transposed convolution, whose outputs have different numbers of taps, is of sums over `x - zero_point`.
    With `wraps`, a sum that leaves 32 bits because of its bias wraps, as the array and onnxruntime's kernels do.
    """
    values = weights.values
    out = values.shape[0]
    if bias is not None and bias.size not in (1, out):
        raise Refusal.INVALID(f"the bias of {name!r} has {bias.size} values for {out} channels", "correct the model")
    total = np.zeros(out, dtype=np.int64) if bias is None else np.broadcast_to(bias, (out,)).astype(np.int64)
    if weights.extra is None:
        # sum((x - zx) * w) = sum(x * w) - zx * sum(w). The array pads with the zero point, so every output has all
        # taps and the correction is constant.
        total = total - zero_point * values.reshape(out, -1).sum(axis=1, dtype=np.int64)
    # Largest factor of a weight: a byte, or the difference of a byte and its zero point.
    largest = 128 if weights.extra is None else 255
    reach = largest * np.abs(values).reshape(out, -1).sum(axis=1, dtype=np.int64)
    # Only the products must then fit 32 bits: a bias near the ends of int32 wraps in the same way in onnxruntime.
    if not wraps:
        reach = reach + np.abs(total)
    if out and int(reach.max()) > INT32_MAX:
        raise Refusal.RANGE(
            f"sums of {name!r} may leave 32 bits: up to {int(reach.max())} in channel {int(reach.argmax())}",
            "use a smaller bias or fewer inputs",
        )
    return total.astype(np.int32)  # modulo 2**32


def array_scales(
    weights: Weights, x: QParams, result: Tensor, name: str
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Mantissa and shift of each output channel."""
    # onnxruntime computes this in fp32: (input scale * weight scale) / output scale.
    factor = ((x.scale * weights.scale).astype(np.float32) / np.float32(result.scale)).astype(np.float32)
    try:
        scales = [scale_from_float(float(f)) for f in np.broadcast_to(factor, weights.values.shape[:1])]
    except EncodingError as error:
        raise Refusal.WEIGHTS(f"{name!r}: {error}", "quantize the model again") from None
    return np.array([s.mantissa for s in scales], np.uint32), np.array([s.shift for s in scales], np.uint8)


def requantizer_scale(factor: float) -> Scale:
    """The factor of sums that are no weights' alone.

    Raises
    ------
    UnsupportedPattern
        The requantizer cannot express it.
    """
    try:
        return scale_from_float(factor)
    except EncodingError as error:
        raise Refusal.NO_INTEGERS(str(error), "quantize the model again") from None


def array_weights(values: NDArray[np.int32], name: str) -> ArrayWeights:
    """Weights minus their zero points as int8, or as int16 where one needs a ninth bit."""
    if values.size == 0:
        raise ModelError(f"node {name!r}: its weights are empty: remove the node")
    if values.min() >= INT8_MIN and values.max() <= INT8_MAX:
        return values.astype(np.int8)
    span = int(weight_spans(values).max())
    if span > MOST_SPAN:
        raise Refusal.WEIGHTS(
            f"weights of an output channel of {name!r} and 0 are {span} apart, but a byte minus a zero point spans "
            f"{MOST_SPAN}",
            "quantize the weights to int8",
        )
    return values.astype(np.int16)
