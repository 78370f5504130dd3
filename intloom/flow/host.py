"""The float side of a network: what comes before the accelerator and after it, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from compiler.frontend import FoldedModel, Quant
from compiler.program.program import Program, Role
from hw.spec.errors import ModelError, UsageError

Array = NDArray[np.generic]
Int8 = NDArray[np.int8]


def open_session(model: bytes) -> ort.InferenceSession:
    """An onnxruntime session on the CPU with its default optimisation, silent."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # onnxruntime's own exceptions share no documented base.
        raise ModelError(f"onnxruntime cannot load the model: {' '.join(str(error).split())}") from error


def run_with_outputs(model: onnx.ModelProto, names: list[str], feeds: Mapping[str, Array]) -> dict[str, NDArray[Any]]:
    """Some values of a model by onnxruntime with its default optimisation."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    present = {o.name for o in shown.graph.output}
    shown.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in present)
    session = open_session(shown.SerializeToString())
    wanted = {i.name for i in session.get_inputs()}
    values = session.run(names, {k: v for k, v in feeds.items() if k in wanted})
    return dict(zip(names, values, strict=True))


def quantize_array(values: Array, quant: Quant, shape: tuple[int, ...]) -> Int8:
    """Real values, or the model's own integers, as the accelerator's int8 of `shape`."""
    low, high = (0, 255) if quant.unsigned else (-128, 127)
    if np.issubdtype(values.dtype, np.floating):
        # Division in fp32, round to even, then the zero point: QuantizeLinear's own order.
        scaled = np.rint(values.astype(np.float32) / np.float32(quant.scale)) + np.float32(quant.zero_point)
        codes = np.clip(scaled, low, high).astype(np.int16)
    else:
        codes = values.astype(np.int16)
    return (codes - (128 if quant.unsigned else 0)).astype(np.int8).reshape(shape)


def dequantize_array(codes: Int8, quant: Quant) -> NDArray[np.float32]:
    """The real values of the accelerator's int8, in the model's shape."""
    whole = stored_array(codes, quant).astype(np.int32) - quant.zero_point
    return (whole.astype(np.float32) * np.float32(quant.scale)).astype(np.float32)


def stored_array(codes: Int8, quant: Quant) -> Array:
    """The model's own integers behind the accelerator's int8, in the model's shape."""
    shaped = codes.reshape(quant.shape)
    return (shaped.astype(np.int16) + 128).astype(np.uint8) if quant.unsigned else shaped


class HostSide:
    """Turns a model's inputs into the accelerator's, and the accelerator's outputs into the model's."""

    def __init__(self, folded: FoldedModel) -> None:
        self._folded = folded
        self._head = None if folded.host_head is None else open_session(folded.host_head)
        self._tail = None if folded.host_tail is None else open_session(folded.host_tail)

    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the model's inputs."""
        if self._head is None:
            return {q.source: q.shape for q in self._folded.input_quant.values()}
        shapes = {i.name: tuple(i.shape) for i in self._head.get_inputs()}
        made = {o.name for o in self._head.get_outputs()}
        direct = {q.source: q.shape for q in self._folded.input_quant.values() if q.source not in made}
        return {**shapes, **direct}

    def before(self, feeds: Mapping[str, Array]) -> dict[str, Int8]:
        """The accelerator's inputs for a model's inputs."""
        values: dict[str, Array] = dict(feeds)
        if self._head is not None:
            values.update(_run(self._head, values))
        result = {}
        for name, quant in self._folded.input_quant.items():
            if quant.source not in values:
                raise UsageError(f"input {quant.source!r} is missing: given are {', '.join(feeds) or 'none'}")
            result[name] = quantize_array(values[quant.source], quant, self._folded.graph.tensors[name].shape)
        return result

    def after(self, outputs: Mapping[str, Int8], feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The model's outputs for the accelerator's outputs; a tail may also read `feeds`, the model's inputs."""
        values: dict[str, Array] = dict(feeds)
        leaving: dict[str, Array] = {}
        for name, quant in self._folded.output_quant.items():
            real = dequantize_array(outputs[name], quant)
            stored = stored_array(outputs[name], quant)
            values[quant.stored] = stored
            leaving[quant.source] = values[quant.source] = stored if quant.source == quant.stored else real
        if self._tail is None:
            return leaving
        results = _run(self._tail, values)
        consumed = {i.name for i in self._tail.get_inputs()}
        return {**{k: v for k, v in leaving.items() if k not in consumed}, **results}


def _run(session: ort.InferenceSession, values: Mapping[str, Array]) -> dict[str, Array]:
    feeds = {i.name: values[i.name] for i in session.get_inputs() if i.name in values}
    names = [o.name for o in session.get_outputs()]
    try:
        return dict(zip(names, session.run(names, feeds), strict=True))
    except Exception as error:
        # onnxruntime's own exceptions share no documented base.
        raise UsageError(f"onnxruntime refused the inputs: {' '.join(str(error).split())}") from error


def plain_quant(program: Program) -> dict[str, Quant]:
    """Scales of a program's inputs as its own manifest has them, for running without the model."""
    return {p.name: _place_quant(p.name, program) for p in program.places if p.role is Role.INPUT}


def output_quant(program: Program) -> dict[str, Quant]:
    """Scales of a program's outputs as its own manifest has them."""
    return {p.name: _place_quant(p.name, program) for p in program.places if p.role is Role.OUTPUT}


def _place_quant(name: str, program: Program) -> Quant:
    place = program.place(name)
    zero = place.zero_point + (128 if place.unsigned else 0)
    return Quant(
        name=name, stored=name, source=name, shape=place.shape,
        scale=place.scale, zero_point=zero, unsigned=place.unsigned,
    )  # fmt: skip
