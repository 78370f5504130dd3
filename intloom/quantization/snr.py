"""Signal-to-noise ratio of every quantized tensor against the float model, on one sample."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from intloom.compiler.reference import open_session
from intloom.quantization.graph_values import with_values
from intloom.quantization.samples import Sample


@dataclass(frozen=True)
class TensorNoise:
    """Comparison of one quantized tensor with its float original."""

    tensor: str
    op: str
    """Operator that produces the tensor."""
    snr_db: float
    saturated: float
    """Fraction of float values more than half a step beyond the representable range."""
    at_ends: float
    """Fraction of codes at the lower or upper end of the range, the larger of the two: clipped values or ReLU zeros."""
    distinct: int
    """How many of the 256 codes occur; 1 means a constant tensor."""
    values: int


@dataclass(frozen=True)
class _Codes:
    """A quantized tensor in the model: the name of its integers, its scale and its zero point."""

    name: str
    scale: float
    zero_point: int
    unsigned: bool

    def bounds(self) -> tuple[float, float]:
        """Real values below and above which codes saturate."""
        low, high = (0, 255) if self.unsigned else (-128, 127)
        return self.scale * (low - self.zero_point - 0.5), self.scale * (high - self.zero_point + 0.5)


def measure_noise(reference: onnx.ModelProto, quantized: onnx.ModelProto, sample: Sample) -> tuple[TensorNoise, ...]:
    """The noise of every activation that the quantized model holds as integers, in the order of computation."""
    codes = _find_codes(reference, quantized)
    if not codes:
        return ()
    makers = {output: node.op_type for node in reference.graph.node for output in node.output}
    floats = _run(reference, list(codes), sample)
    integers = _run(quantized, [c.name for c in codes.values()], sample)
    result = []
    for (tensor, code), real, whole in zip(codes.items(), floats, integers, strict=True):
        result.append(_compare(tensor, makers.get(tensor, "Input"), code, real, whole))
    return tuple(result)


def _compare(tensor: str, op: str, code: _Codes, real: NDArray[np.float32], whole: NDArray[Any]) -> TensorNoise:
    restored = (whole.astype(np.float64) - code.zero_point) * code.scale
    signal = float(np.square(real, dtype=np.float64).sum())
    noise = float(np.square(real - restored).sum())
    snr = float("inf") if noise == 0.0 else 10.0 * float(np.log10(max(signal, 1e-30) / noise))
    low, high = code.bounds()
    saturated = float(np.mean((real < low) | (real > high)))
    bottom = 0 if code.unsigned else -128
    ends = max(float(np.mean(whole == bottom)), float(np.mean(whole == bottom + 255)))
    return TensorNoise(tensor, op, snr, saturated, ends, int(np.unique(whole).size), whole.size)


def _find_codes(reference: onnx.ModelProto, quantized: onnx.ModelProto) -> dict[str, _Codes]:
    """Float tensor name to its integers, by the names that onnxruntime's quantizer gives."""
    constants = {i.name: i for i in quantized.graph.initializer}
    made = [o for node in quantized.graph.node for o in node.output]
    result: dict[str, _Codes] = {}
    known = {o for node in reference.graph.node for o in node.output} | {i.name for i in reference.graph.input}
    for name in made:
        for suffix in ("_QuantizeLinear_Output", "_quantized"):
            tensor = name.removesuffix(suffix)
            scale, zero = constants.get(f"{tensor}_scale"), constants.get(f"{tensor}_zero_point")
            if tensor != name and tensor in known and scale is not None and zero is not None:
                unsigned = zero.data_type == onnx.TensorProto.UINT8
                point, step = numpy_helper.to_array(zero), numpy_helper.to_array(scale)
                result[tensor] = _Codes(name, float(step.ravel()[0]), int(point.ravel()[0]), unsigned)
    return result


def _run(model: onnx.ModelProto, names: list[str], sample: Sample) -> list[NDArray[Any]]:
    made = [n for n in names if n not in sample]
    session = open_session(with_values(model, made).SerializeToString())
    values = dict(zip(made, session.run(made, dict(sample)), strict=True))
    return [values[n] if n in values else sample[n] for n in names]
