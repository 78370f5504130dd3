"""Loading and hashing of ONNX files."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError

from intloom.common.errors import FileFormatError, ModelError
from intloom.compiler.importer.batch import one_image
from intloom.compiler.importer.limits import check_limits
from intloom.compiler.importer.load import read_onnx
from intloom.compiler.importer.subgraphs import all_graphs
from intloom.compiler.importer.tflite.file import is_tflite
from intloom.files import read_bytes, read_prefix

ModelSource: TypeAlias = Path | onnx.ModelProto
"""A model in a file or in memory."""
_CHUNK = 1 << 20
_INTEGER_OPERATORS = frozenset({"ConvInteger", "MatMulInteger", "QGemm"})


def is_tflite_file(source: ModelSource) -> bool:
    """Whether a model is a TFLite file."""
    return isinstance(source, Path) and source.is_file() and is_tflite(read_prefix(source, 8, "model"))


def load_onnx(path: Path, *, external_data: bool = True) -> onnx.ModelProto:
    """The model in a file, with its external data.

    Raises
    ------
    FileFormatError
        The file or its external data cannot be read, or it is not an ONNX model.
    ModelError
        A function calls itself.
    UnsupportedError
        The model has too many nodes.
    """
    if is_tflite_file(path):
        raise FileFormatError(
            f"{path} must be an ONNX model here, but is a TFLite file; compile and run take it as it is"
        )
    model = read_onnx(path, external_data=external_data)
    check_limits(model)
    return one_image(model)


def model_proto(source: ModelSource) -> onnx.ModelProto:
    """The model, read from its file if it is in one."""
    return load_onnx(source) if isinstance(source, Path) else source


def parse_model(data: bytes) -> onnx.ModelProto:
    """The model in the content of an ONNX file.

    Raises
    ------
    FileFormatError
        The content is not an ONNX model.
    """
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise FileFormatError(f"the bytes must be an ONNX model, but cannot be parsed: {error}") from None
    return model


def operators(model: onnx.ModelProto) -> Iterator[str]:
    """Operator types of a model's nodes and of the nodes in its functions."""
    for body in (model.graph, *model.functions):
        yield from (node.op_type for node in body.node)


def is_quantized(operators: Iterable[str]) -> bool:
    """Whether any of the operators is quantized, in QDQ or QOperator form."""
    return any("quantize" in op.lower() or "QLinear" in op or op in _INTEGER_OPERATORS for op in operators)


def content_hash(path: Path) -> str:
    """SHA-256 over the model file and every external data file that it names."""
    digest = hashlib.sha256(read_bytes(path, "model"))
    model = load_onnx(path, external_data=False)
    for location in sorted(set(_external_locations(model.graph))):
        digest.update(location.encode())
        digest.update(_file_digest(path.parent / location, path))
    return digest.hexdigest()


def _file_digest(path: Path, model: Path) -> bytes:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise ModelError(f"external data {path.name} of {model} cannot be read: {error.strerror}") from None
    return digest.digest()


def _external_locations(graph: onnx.GraphProto) -> Iterator[str]:
    graphs = list(all_graphs(graph))
    attributes = (attribute for g in graphs for node in g.node for attribute in node.attribute)
    tensors = [t for g in graphs for t in g.initializer] + [t for a in attributes for t in (a.t, *a.tensors)]
    for tensor in tensors:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            yield from (entry.value for entry in tensor.external_data if entry.key == "location")
