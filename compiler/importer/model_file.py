"""A model file of any format that an importer exists for, chosen by the file's first bytes."""

from collections.abc import Mapping
from pathlib import Path

import onnx

from intloom.common.errors import UsageError
from intloom.compiler.importer.load import load_onnx_model
from intloom.compiler.importer.model import Model
from intloom.compiler.importer.tflite.file import is_tflite
from intloom.compiler.importer.tflite.load import load_tflite

_PREFIX = 8


def load_model(source: Path | onnx.ModelProto, *, dims: Mapping[str, int] | None = None) -> Model:
    """Read, check and convert an ONNX or TFLite file, or an ONNX model in memory, which stays unchanged.

    `dims` sets the sizes of open dimensions by their names; see `fix_dims`.

    Raises
    ------
    FileFormatError
        The file cannot be read or has another format.
    ModelError
        The model is not valid.
    UnsupportedError
        The opset is out of range, a dimension is still dynamic, or a TFLite file is not int8 throughout.
    """
    if not isinstance(source, Path) or not _begins_as_tflite(source):
        return load_onnx_model(source, dims=dims)
    if dims:
        raise UsageError(f"{source} is a TFLite file, which has no named dimensions: leave out {', '.join(dims)}")
    return load_tflite(source)


def _begins_as_tflite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_tflite(file.read(_PREFIX))
    except OSError:
        return False
