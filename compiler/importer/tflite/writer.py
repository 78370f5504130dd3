"""Writing of TFLite flatbuffers: single operators of a file, and the file cut at some operators."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import flatbuffers
import numpy as np

from intloom.compiler.importer.tflite.file import (
    IDENTIFIER,
    TfliteFile,
    TfliteOperator,
    TfliteTensor,
    enum_names,
    schema,
)

_VERSION = 3


def write_tflite(
    tensors: Sequence[TfliteTensor] | Mapping[int, TfliteTensor],
    operators: Iterable[TfliteOperator],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> bytes:
    """A flatbuffer of these operators; only tensors that they or the outputs use are written."""
    operators = list(operators)
    used = dict.fromkeys(i for op in operators for i in (*op.inputs, *op.outputs) if i >= 0)
    used |= dict.fromkeys((*inputs, *outputs))
    index = {old: new for new, old in enumerate(used)} | {-1: -1}
    s = schema()
    model, graph = s.ModelT(), s.SubGraphT()
    model.version, model.subgraphs, model.buffers = _VERSION, [graph], [s.BufferT()]
    codes: dict[tuple[str, int], int] = {}
    graph.tensors = [_tensor(model, tensors[i]) for i in used]
    graph.operators = [_operator(op, index, codes) for op in operators]
    graph.inputs, graph.outputs = [index[i] for i in inputs], [index[i] for i in outputs]
    model.operatorCodes = [_code(*key) for key in codes]
    builder = flatbuffers.Builder(1 << 12)
    builder.Finish(model.Pack(builder), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def one_operator(file: TfliteFile, op: TfliteOperator, given: Collection[int] = ()) -> tuple[bytes, tuple[int, ...]]:
    """The flatbuffer of one operator, and the tensors that are its inputs, each once; `given` constants are inputs."""
    tensors = {i: replace(file.tensors[i], data=None) if i in given else file.tensors[i] for i in op.inputs if i >= 0}
    inputs = tuple(i for i, tensor in tensors.items() if tensor.data is None)
    tensors |= {i: file.tensors[i] for i in op.outputs}
    return write_tflite(tensors, [op], inputs, op.outputs), inputs


def _number(enum: str, name: str) -> int:
    return next(number for number, known in enum_names(enum).items() if known == name)


def _code(name: str, version: int) -> Any:
    code = schema().OperatorCodeT()
    code.builtinCode = _number("BuiltinOperator", name)
    # The byte that older readers know holds codes up to 127, which is also the sign to look at the other field.
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    code.version = version
    return code


def _operator(op: TfliteOperator, index: dict[int, int], codes: dict[tuple[str, int], int]) -> Any:
    entry = schema().OperatorT()
    entry.opcodeIndex = codes.setdefault((op.code, op.version), len(codes))
    entry.inputs, entry.outputs = [index[i] for i in op.inputs], [index[i] for i in op.outputs]
    if op.options is not None:
        entry.builtinOptions = op.options
        entry.builtinOptionsType = _number("BuiltinOptions", type(op.options).__name__.removesuffix("T"))
    return entry


def _tensor(model: Any, tensor: TfliteTensor) -> Any:
    s = schema()
    entry = s.TensorT()
    entry.name, entry.shape, entry.type = tensor.name, list(tensor.shape), _number("TensorType", tensor.dtype)
    entry.buffer = 0
    if tensor.data is not None:
        buffer = s.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(tensor.data).tobytes(), np.uint8)
        model.buffers.append(buffer)
        entry.buffer = len(model.buffers) - 1
    if tensor.scales:
        quantization = s.QuantizationParametersT()
        quantization.scale, quantization.zeroPoint = list(tensor.scales), list(tensor.zero_points)
        # A file may state a dimension that its single scale or its vector does not have.
        quantization.quantizedDimension = tensor.axis if tensor.axis < len(tensor.shape) else 0
        entry.quantization = quantization
    return entry
