"""Reading of a TFLite flatbuffer: checked, and as plain data.

The generated accessors of the schema read at the offsets that the file states, so every count is checked against a
limit before it is used, and every exception of an accessor is a damaged file.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import FileFormatError, IntloomError, UnsupportedError
from intloom.common.extras import require_extra
from intloom.compiler.importer.limits import LARGEST_VALUE
from intloom.compiler.importer.tflite.sparse import dense_values
from intloom.compiler.refusals import Refusal

IDENTIFIER = b"TFL3"
_LARGEST_FILE = 1 << 30
_MAX_OPERATORS = 1 << 16
_MAX_TENSORS = 1 << 17
_MAX_RANK = 8
_MAX_NAME = 4096
_FULL_INT8 = (
    "convert with optimizations = [tf.lite.Optimize.DEFAULT], a representative_dataset and "
    "target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]"
)
_ZERO_POINTS = {"INT8": (-128, 127), "UINT8": (0, 255)}
ELEMENTS = {"INT8": np.int8, "UINT8": np.uint8, "INT32": np.int32, "INT64": np.int64, "FLOAT32": np.float32}
"""Element types of the importer, by their name in the schema."""
_PRODUCTS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 0, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 2}
"""Operators whose second operand is weights, and the position of the other factor."""
_LARGEST_FACTOR = 256
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class TfliteTensor:
    """A tensor of the file. `scales` is empty if it is not quantized."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """Name of the element type in the schema."""
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    """Dimension along which there are several scales."""
    data: Array | None
    """Values of a constant."""
    variable: bool = False
    """Keeps its values between runs."""

    @property
    def quantized(self) -> bool:
        """Whether it holds 8-bit values with one scale."""
        return self.dtype in ("INT8", "UINT8") and len(self.scales) == 1


@dataclass(frozen=True, eq=False)
class TfliteOperator:
    """An operator of the file; inputs and outputs are indices of tensors, -1 for an input that is left out."""

    index: int
    code: str
    """Name of the operator in the schema."""
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any
    """Options in the object form of the schema, or None."""

    @property
    def label(self) -> str:
        """The operator in messages."""
        return f"operator {self.index} ({self.code})"

    def option(self, name: str, default: int) -> int:
        """An integer option; `default` where the file leaves out the options."""
        value = default if self.options is None else getattr(self.options, name)
        return int(value)


@dataclass(frozen=True, eq=False)
class TfliteFile:
    """The only subgraph of a file."""

    name: str
    tensors: tuple[TfliteTensor, ...]
    operators: tuple[TfliteOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    source: str
    """SHA-256 of the file."""

    def label(self, op: TfliteOperator) -> str:
        """Where an operator is in the file, and what it computes."""
        return f"{op.index}:{op.code}:{self.tensors[op.outputs[0]].name}"


def is_tflite(data: bytes) -> bool:
    """Whether the content begins as a TFLite flatbuffer."""
    return data[4:8] == IDENTIFIER


@cache
def schema() -> Any:
    """The generated schema.

    Raises
    ------
    EnvironmentFault
        The extra `tflite` is not installed.
    """
    require_extra("tflite", "ai_edge_litert.schema_py_generated")
    from ai_edge_litert import schema_py_generated

    return schema_py_generated


@cache
def enum_names(enum: str) -> dict[int, str]:
    """Names of the values of an enumeration of the schema."""
    return {v: k for k, v in vars(getattr(schema(), enum)).items() if not k.startswith("_")}


def read_tflite(path: Path) -> TfliteFile:
    """Read and check a TFLite file.

    Raises
    ------
    FileFormatError
        The file cannot be read, is damaged or contradicts itself.
    UnsupportedError
        The file is valid but uses what the accelerator has no form for.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise FileFormatError(f"{path} must have at most {_LARGEST_FILE >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"cannot read {path}: {error.strerror}") from None
    return parse_tflite(data, path.name)


def parse_tflite(data: bytes, name: str) -> TfliteFile:
    """The same for the content of a file; `name`, without .tflite, becomes the model's name."""
    if not is_tflite(data):
        raise FileFormatError(f"{name} must be a TFLite file, but does not begin as one: check that it is complete")
    reader = _Reader(data, name)
    try:
        return reader.read()
    except IntloomError:
        raise
    except Exception as error:  # noqa: BLE001  # accessors raise struct.error, TypeError, ValueError, UnicodeError…
        raise FileFormatError(f"{name} is not a valid TFLite file: check that it is complete ({error})") from None


class _Reader:
    def __init__(self, data: bytes, name: str) -> None:
        self._data, self._name = data, name
        self._model = schema().Model.GetRootAs(data, 0)
        self._bytes = 0
        """Bytes of constants that were read; several tensors may name one buffer, but not endlessly."""

    def read(self) -> TfliteFile:
        count = self._count(self._model.SubgraphsLength(), 1 << 10, "subgraphs")
        if not count:
            raise FileFormatError(
                f"{self._name} is not a valid TFLite file (it has no graph): check that it is complete"
            )
        if count != 1:
            raise UnsupportedError(
                f"{self._name} must have one subgraph, not {count}: control flow (IF, WHILE, CALL_ONCE) and several "
                "signatures are not supported; export one function without them",
                Refusal.CONTROL_FLOW.number,
            )
        graph = self._model.Subgraphs(0)
        codes = list(self._codes())
        tensors = tuple(
            self._tensor(graph.Tensors(i)) for i in range(self._count(graph.TensorsLength(), _MAX_TENSORS, "tensors"))
        )
        operators = tuple(
            self._operator(i, graph.Operators(i), codes, len(tensors))
            for i in range(self._count(graph.OperatorsLength(), _MAX_OPERATORS, "operators"))
        )
        inputs, outputs = (
            self._indices(get, length, len(tensors), "an input or output of the graph", lowest=0)
            for get, length in (
                (graph.InputsAsNumpy, graph.InputsLength()),
                (graph.OutputsAsNumpy, graph.OutputsLength()),
            )
        )
        if any(tensors[i].data is not None for i in inputs):
            raise FileFormatError(f"{self._name} must have inputs that are no constants: export the model again")
        if not operators or not inputs or not outputs:
            raise FileFormatError(f"{self._name} must have operators, inputs and outputs: export the model again")
        digest = hashlib.sha256(self._data).hexdigest()
        result = TfliteFile(
            self._name.removesuffix(".tflite"),
            _unique_names(tensors),
            operators,
            inputs,
            # Converters list a tensor twice if a network returns it twice; outputs of a model have unique names.
            tuple(dict.fromkeys(outputs)),
            digest,
        )
        _check_order(result)
        return result

    def _count(self, count: int, limit: int, what: str) -> int:
        if not 0 <= count <= min(limit, len(self._data) // 4):
            raise FileFormatError(f"{self._name} must have at most {limit} {what}, not {count}")
        return count

    def _codes(self) -> Iterator[tuple[str, int]]:
        names = enum_names("BuiltinOperator")
        for i in range(self._count(self._model.OperatorCodesLength(), _MAX_OPERATORS, "operator codes")):
            entry = self._model.OperatorCodes(i)
            # Older files have the code in a byte; newer ones repeat it there as far as it fits.
            number = max(entry.BuiltinCode(), entry.DeprecatedBuiltinCode())
            if names.get(number) == "CUSTOM":
                custom = (entry.CustomCode() or b"")[:_MAX_NAME].decode(errors="replace")
                raise UnsupportedError(
                    f"{self._name} has the custom operator {custom!r}: export the model without it (an Edge TPU file "
                    "before edgetpu_compiler, a detector before its post-processing)",
                    Refusal.OPERATOR.number,
                )
            if number not in names:
                raise UnsupportedError(
                    f"{self._name} has the operator code {number}, which this schema does not know",
                    Refusal.OPERATOR.number,
                )
            yield names[number], entry.Version()

    def _indices(self, get: Callable[[], Any], length: int, tensors: int, what: str, *, lowest: int) -> tuple[int, ...]:
        self._count(length, _MAX_TENSORS, "indices")
        values = tuple(int(v) for v in get()) if length else ()
        if any(not lowest <= v < tensors for v in values):
            raise FileFormatError(f"{self._name}: {what} must be one of {tensors} tensors, not {values}")
        return values

    def _operator(self, index: int, entry: Any, codes: list[tuple[str, int]], tensors: int) -> TfliteOperator:
        number = entry.OpcodeIndex()
        if not 0 <= number < len(codes):
            raise FileFormatError(f"{self._name}: operator {index} must have one of {len(codes)} codes, not {number}")
        code, version = codes[number]
        what = f"an operand of operator {index} ({code})"
        inputs = self._indices(entry.InputsAsNumpy, entry.InputsLength(), tensors, what, lowest=-1)
        outputs = self._indices(entry.OutputsAsNumpy, entry.OutputsLength(), tensors, what, lowest=0)
        return TfliteOperator(index, code, version, inputs, outputs, self._options(entry))

    def _options(self, entry: Any) -> Any:
        kind, table = entry.BuiltinOptionsType(), entry.BuiltinOptions()
        if not kind or table is None:
            return None
        name = enum_names("BuiltinOptions").get(kind)
        if name is None:
            raise UnsupportedError(
                f"{self._name} has operator options {kind}, which this schema does not know", Refusal.OPERATOR.number
            )
        accessor = getattr(schema(), name)()
        accessor.Init(table.Bytes, table.Pos)
        return getattr(schema(), f"{name}T").InitFromObj(accessor)

    def _tensor(self, entry: Any) -> TfliteTensor:
        name = (entry.Name() or b"")[:_MAX_NAME].decode(errors="replace")
        rank = self._count(entry.ShapeLength(), 1 << 16, "dimensions")
        shape = tuple(int(v) for v in entry.ShapeAsNumpy()) if rank else ()
        signature = entry.ShapeSignatureLength()
        if rank > _MAX_RANK or min(shape, default=1) < 0:
            raise FileFormatError(f"{self._name}: tensor {name!r} must have up to {_MAX_RANK} sizes of 0 or more")
        if 0 < signature <= _MAX_RANK and any(int(v) < 0 for v in entry.ShapeSignatureAsNumpy()):
            # The converter stores size 1 for every open dimension; a batch of 1 is then what runs.
            shape = tuple(max(1, v) for v in shape)
        if prod(shape) > LARGEST_VALUE:
            raise FileFormatError(f"{self._name}: tensor {name!r} must have at most {LARGEST_VALUE:,} elements")
        dtype = enum_names("TensorType").get(entry.Type())
        if dtype is None:
            raise UnsupportedError(
                f"{self._name}: tensor {name!r} has the unknown type {entry.Type()}", Refusal.TYPE.number
            )
        scales, zeros, axis = self._quantization(entry.Quantization(), name)
        low, high = _ZERO_POINTS.get(dtype, (-math.inf, math.inf))
        tiny = dtype in _ZERO_POINTS and len(scales) == 1 and scales[0] < np.finfo(np.float32).tiny
        if tiny or not all(low <= zero <= high for zero in zeros):
            raise FileFormatError(
                f"{self._name}: tensor {name!r} must have a normal fp32 scale and zero points of its type, not "
                f"{scales[0]} and {zeros[0]}: export the model again"
            )
        data = self._constant(entry, name, shape, dtype)
        return TfliteTensor(name, shape, dtype, scales, zeros, axis, data, bool(entry.IsVariable()))

    def _quantization(self, entry: Any, name: str) -> tuple[tuple[float, ...], tuple[int, ...], int]:
        if entry is None or not entry.ScaleLength():
            return (), (), 0
        count = self._count(entry.ScaleLength(), 1 << 20, "scales")
        scales = np.asarray(entry.ScaleAsNumpy(), np.float32)
        zeros = np.asarray(entry.ZeroPointAsNumpy(), np.int64) if entry.ZeroPointLength() else np.zeros(count, np.int64)
        if not (np.all(np.isfinite(scales)) and np.all(scales > 0)) or zeros.size not in (1, count):
            raise FileFormatError(
                f"{self._name}: tensor {name!r} must have positive, finite scales and a zero point for each"
            )
        zeros = np.broadcast_to(zeros, scales.shape)
        return tuple(map(float, scales)), tuple(map(int, zeros)), int(entry.QuantizedDimension())

    def _constant(self, entry: Any, name: str, shape: tuple[int, ...], dtype: str) -> Array | None:
        number = entry.Buffer()
        if not 0 <= number < self._model.BuffersLength():
            raise FileFormatError(f"{self._name}: tensor {name!r} names buffer {number}, which does not exist")
        buffer = self._model.Buffers(number)
        if buffer.Offset() > 1:
            raise UnsupportedError(
                f"{self._name} stores tensor {name!r} outside its flatbuffer: use a smaller model", Refusal.SIZE.number
            )
        length = buffer.DataLength()
        if not length:
            return None
        if dtype not in ELEMENTS:
            raise _refused_type(self._name, name, dtype)
        element, sparsity = np.dtype(ELEMENTS[dtype]), entry.Sparsity()
        size = prod(shape) * element.itemsize
        if sparsity is None and length != size:
            raise FileFormatError(
                f"{self._name}: constant {name!r} of shape {shape} must have {size} bytes, not {length}: export the "
                "model again"
            )
        self._bytes += size
        if self._bytes > 16 * len(self._data):
            raise FileFormatError(f"{self._name}: its tensors name the same buffers too often: export the model again")
        raw = np.asarray(buffer.DataAsNumpy(), np.uint8)
        if raw.size != length:
            raise FileFormatError(f"{self._name}: constant {name!r} ends outside the file: check that it is complete")
        # A copy, since buffers need not be aligned to their elements.
        values = np.frombuffer(raw.tobytes(), element)
        if sparsity is None:
            return values.reshape(shape)
        self._count(sparsity.DimMetadataLength(), 2 * _MAX_RANK, "levels of a sparse constant")
        return dense_values(schema().SparsityParametersT.InitFromObj(sparsity), values, shape)


def _refused_type(file: str, tensor: str, dtype: str) -> UnsupportedError:
    reasons = {
        "FLOAT16": f"stores float16 weights; {_FULL_INT8}",
        "INT4": f"stores int4 weights; {_FULL_INT8}",
        "INT16": f"has int16 activations (int16x8); {_FULL_INT8}",
    }
    why = reasons.get(dtype, f"stores values of type {dtype}; {_FULL_INT8}")
    row = Refusal.TYPE if dtype == "INT16" else Refusal.WEIGHTS
    return UnsupportedError(f"{file}: tensor {tensor!r} {why}", row.number)


def check_integer(file: TfliteFile) -> None:
    """Refuse files that compute in float, with the setting of the converter that gives a full int8 file.

    Raises
    ------
    UnsupportedError
        The file is float, of float16 weights, quantized dynamically, or int16x8.
    """
    used = {i for op in file.operators for i in (*op.inputs, *op.outputs) if i >= 0}
    kinds = {file.tensors[i].dtype for i in used}
    for op in file.operators:
        _check_sum(file, op)
        _check_factors(file, op)
        for index in (*op.inputs, *op.outputs):
            if index >= 0 and file.tensors[index].dtype in ("FLOAT16", "INT16", "INT4"):
                raise _refused_type(file.name, file.tensors[index].name, file.tensors[index].dtype)
    if not kinds & {"INT8", "UINT8"}:
        raise UnsupportedError(f"{file.name} is a float model; {_FULL_INT8}", Refusal.FLOAT_MODEL.number)
    for op in file.operators:
        operands = [file.tensors[i] for i in op.inputs if i >= 0]
        weights = [t for t in operands if t.data is not None and t.dtype == "INT8"]
        if weights and operands[0].data is None and operands[0].dtype == "FLOAT32" and op.code != "DEQUANTIZE":
            raise UnsupportedError(
                f"{file.name}: {op.label} has int8 weights and float activations (dynamic range); {_FULL_INT8}",
                Refusal.DYNAMIC.number,
            )


def _check_sum(file: TfliteFile, op: TfliteOperator) -> None:
    """Check the scales of a sum: LiteRT ends the process where the result's is far below an operand's."""
    if op.code == "ADD" and len(op.inputs) == 2 and min(op.inputs) >= 0:
        operands, result = [file.tensors[i] for i in op.inputs], file.tensors[op.outputs[0]]
        if result.quantized and 2 * max(max(t.scales, default=0) for t in operands) >= 2**20 * result.scales[0]:
            raise FileFormatError(
                f"{file.name}: {op.label} must have a result whose scale is more than 2^-19 times its operands'"
            )


def _check_factors(file: TfliteFile, op: TfliteOperator) -> None:
    """Check the factors that scale sums of products: LiteRT cannot run a file with one that XNNPACK has no kernel for.

    Such a result was constant in all samples of the calibration.
    """
    at = _PRODUCTS.get(op.code)
    if at is None or len(op.inputs) <= max(1, at):
        return
    x, w, result = (file.tensors[i] for i in (op.inputs[at], op.inputs[1], op.outputs[0]))
    # Older depthwise kernels, of uint8, are LiteRT's own.
    if not (x.quantized and result.quantized and w.scales) or (op.code, x.dtype) == ("DEPTHWISE_CONV_2D", "UINT8"):
        return
    factor = np.float32(x.scales[0]) * np.float32(max(w.scales)) / np.float32(result.scales[0])
    if factor >= _LARGEST_FACTOR:
        raise UnsupportedError(
            f"{file.name}: {op.label} must multiply its sums by less than {_LARGEST_FACTOR}, not {factor:,.0f}, which "
            "LiteRT cannot run: convert again with samples for which its result is not constant",
            Refusal.RANGE.number,
        )


def _unique_names(tensors: tuple[TfliteTensor, ...]) -> tuple[TfliteTensor, ...]:
    """Give every tensor a name of its own; TFLite does not require one."""
    taken: set[str] = set()
    renamed = []
    for index, tensor in enumerate(tensors):
        name = tensor.name or f"tensor{index}"
        if name in taken:
            name = f"{name}#{index}"
        taken.add(name)
        renamed.append(replace(tensor, name=name))
    return tuple(renamed)


def _check_order(file: TfliteFile) -> None:
    """Check that each tensor is computed once, before it is read."""
    known = {i for i, t in enumerate(file.tensors) if t.data is not None} | set(file.inputs)
    for op in file.operators:
        for index in op.inputs:
            if index >= 0 and file.tensors[index].variable:
                raise UnsupportedError(
                    f"{file.name}: {op.label} keeps a state: export the cell unrolled, or its convolutions",
                    Refusal.RECURRENT.number,
                )
            if index >= 0 and index not in known:
                raise FileFormatError(
                    f"{file.name}: {op.label} reads {file.tensors[index].name!r} before any operator computes it"
                )
        for index in op.outputs:
            if index in known:
                raise FileFormatError(f"{file.name}: {op.label} computes {file.tensors[index].name!r} again")
            known.add(index)
    for index in file.outputs:
        if index not in known:
            raise FileFormatError(f"{file.name}: no operator computes the output {file.tensors[index].name!r}")
