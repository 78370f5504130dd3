"""Host parts of a model, run by onnxruntime: quantization, nodes between regions, and the float tail."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any, Protocol

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from intloom.arrays import Array
from intloom.common.errors import IntloomError, ModelError, UsageError
from intloom.compiler import reference
from intloom.compiler.frontend import FoldedModel, TensorQuantization
from intloom.compiler.program.program import Program, Role

Int8 = NDArray[np.int8]
Int8s = dict[str, Int8]


@contextmanager
def _onnxruntime(error_class: type[IntloomError], what: str) -> Iterator[None]:
    """Convert exceptions of onnxruntime into `error_class` with a message of one line."""
    try:
        yield
    except Exception as error:
        # onnxruntime's exceptions have no documented base class.
        raise error_class(f"onnxruntime {what}: {' '.join(str(error).split())}") from error


def open_session(model: bytes, *, optimized: bool = True) -> ort.InferenceSession:
    """An onnxruntime session on the CPU with its default optimization, or none, and no log output."""
    with _onnxruntime(ModelError, "cannot load the model"):
        return reference.open_session(model, optimized=optimized)


def run_with_outputs(model: onnx.ModelProto, names: list[str], feeds: Mapping[str, Array]) -> dict[str, NDArray[Any]]:
    """Values of a model, computed by onnxruntime with its default optimization."""
    return run_session(open_session(with_outputs(model, names).SerializeToString()), names, feeds)


def run_session(session: ort.InferenceSession, names: list[str], feeds: Mapping[str, Array]) -> dict[str, NDArray[Any]]:
    """Outputs of an open session; entries of `feeds` that are no inputs are ignored."""
    wanted = {i.name for i in session.get_inputs()}
    # onnxruntime detects some invalid nodes only when it runs them.
    with _onnxruntime(ModelError, "cannot run the model"):
        values = session.run(names, {k: v for k, v in feeds.items() if k in wanted})
    return dict(zip(names, values, strict=True))


def with_outputs(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """The model with the values `names` as additional outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    present = {o.name for o in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in present)
    return copy


def quantize_array(values: Array, quant: TensorQuantization, shape: tuple[int, ...]) -> Int8:
    """Real values, or integers of the model's type, as the accelerator's int8 in `shape`."""
    low, high = (0, 255) if quant.unsigned else (-128, 127)
    if np.issubdtype(values.dtype, np.floating):
        # The operation order of QuantizeLinear: fp32 division, round to even, zero point.
        scaled = np.rint(values.astype(np.float32) / np.float32(quant.scale)) + np.float32(quant.zero_point)
        codes = np.clip(scaled, low, high).astype(np.int16)
    else:
        codes = values.astype(np.int16)
    return (codes - (128 if quant.unsigned else 0)).astype(np.int8).reshape(shape)


def dequantize_array(codes: Int8, quant: TensorQuantization) -> NDArray[np.float32]:
    """The real values of the accelerator's int8, in the model's shape."""
    whole = stored_array(codes, quant).astype(np.int32) - quant.zero_point
    with np.errstate(over="ignore"):  # Beyond float32 it is infinite, as DequantizeLinear says.
        return (whole.astype(np.float32) * np.float32(quant.scale)).astype(np.float32)


def stored_array(codes: Int8, quant: TensorQuantization) -> Array:
    """The accelerator's int8 as integers of the model's type, in the model's shape."""
    shaped = codes.reshape(quant.shape) if quant.positions is None else codes.ravel()[quant.positions]
    return (shaped.astype(np.int16) + 128).astype(np.uint8) if quant.unsigned else shaped


def as_unsigned(values: Array, shifted: bool) -> Array:
    """An int8 value of the file as the uint8 value, larger by 128, that represents it in the rewritten model."""
    if not shifted or values.dtype != np.int8:
        return values
    # A sum of a tensor without dimensions is a scalar of numpy, which onnxruntime does not take.
    return np.asarray(values.astype(np.int16) + 128).astype(np.uint8)


def as_signed(values: Array, shifted: bool) -> Array:
    """The inverse of `as_unsigned`."""
    return (values.astype(np.int16) - 128).astype(np.int8) if shifted and values.dtype == np.uint8 else values


def as_internal(values: Array, shape: tuple[int, ...]) -> Int8:
    """8-bit values of a model as the accelerator's int8 in `shape`."""
    offset = 128 if values.dtype == np.uint8 else 0
    return (values.astype(np.int16) - offset).astype(np.int8).reshape(shape)


class HostParts(Protocol):
    """The host parts of a model: before the first region, between regions, and after the last."""

    def before(self, feeds: Mapping[str, Array], region: int = 0, made: Mapping[str, Int8] | None = None) -> Int8s:
        """Inputs of a region, computed from the model's inputs and from the outputs `made` by earlier regions."""

    def after(self, outputs: Mapping[str, Int8], feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The model's outputs and all outputs of the accelerator; `feeds` are the model's inputs."""


class HostSide:
    """The host parts of a model from an ONNX file, which onnxruntime runs."""

    def __init__(self, folded: FoldedModel) -> None:
        self._folded = folded
        self._parts = [None if p is None else open_session(p) for p in folded.host_parts]
        self._tail = None if folded.final_host_part is None else open_session(folded.final_host_part)

    def _run(self, session: ort.InferenceSession, values: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs of a host part. Int8 values of the file are uint8 inside it."""
        shifted = self._folded.shifted
        feeds = {
            i.name: as_unsigned(values[i.name], i.name in shifted) for i in session.get_inputs() if i.name in values
        }
        names = [o.name for o in session.get_outputs()]
        with _onnxruntime(UsageError, "cannot run the host part"):
            made = dict(zip(names, session.run(names, feeds), strict=True))
        return {name: as_signed(array, name in shifted) for name, array in made.items()}

    def before(self, feeds: Mapping[str, Array], region: int = 0, made: Mapping[str, Int8] | None = None) -> Int8s:
        """Inputs of a region, computed from the model's inputs and from the outputs `made` by earlier regions."""
        folded, part = self._folded, self._parts[region]
        values = {**feeds, **self._known(made or {})}
        if part is not None:
            values.update(self._run(part, values))
        result = {}
        for name in folded.regions[region].inputs:
            quant = folded.input_quant.get(name)
            if quant is None or name in (made or {}):
                continue
            if quant.source not in values:
                raise UsageError(f"input {quant.source!r} is missing; given inputs: {', '.join(feeds) or 'none'}")
            shape = folded.graph.tensors[name].shape
            if values[quant.source].size != prod(shape):
                raise ModelError(
                    f"{quant.source!r} must have {prod(shape)} values by ONNX's shape inference, but onnxruntime "
                    f"computes {values[quant.source].size}: correct the model"
                )
            result[name] = quantize_array(values[quant.source], quant, shape)
        return result

    def after(self, outputs: Mapping[str, Int8], feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The model's outputs and all outputs of the accelerator; `feeds` are the model's inputs."""
        known = self._known(outputs)
        # An output may be an input of the model.
        given = {name: feeds[name] for name in self._folded.inputs if name in feeds}
        leaving = given | {q.source: known[q.source] for q in self._folded.output_quant.values()}
        if self._tail is None:
            return leaving
        return {**leaving, **self._run(self._tail, {**feeds, **known})}

    def _known(self, made: Mapping[str, Int8]) -> dict[str, Array]:
        """Results of the accelerator by their names in the model."""
        values: dict[str, Array] = {}
        for name, quant in self._folded.output_quant.items():
            if name in made:
                values[quant.stored] = values[quant.source] = stored_array(made[name], quant)
                if quant.source != quant.stored:
                    values[quant.source] = dequantize_array(made[name], quant)
        return values


def plain_quant(program: Program) -> dict[str, TensorQuantization]:
    """Quantization of the program's inputs from its manifest, for runs without the model."""
    return {p.name: _tensor_quant(p.name, program) for p in program.tensors if p.role is Role.INPUT}


def output_quant(program: Program) -> dict[str, TensorQuantization]:
    """Quantization of the program's outputs from its manifest."""
    return {p.name: _tensor_quant(p.name, program) for p in program.tensors if p.role is Role.OUTPUT}


def _tensor_quant(name: str, program: Program) -> TensorQuantization:
    tensor = program.tensor(name)
    zero = tensor.zero_point + (128 if tensor.unsigned else 0)
    return TensorQuantization(
        name=name, stored=name, source=name, shape=tensor.shape,
        scale=tensor.scale, zero_point=zero, unsigned=tensor.unsigned,
    )  # fmt: skip
