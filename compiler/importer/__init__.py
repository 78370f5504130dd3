"""ONNX importer: the only package that reads and writes ONNX protobufs."""

from intloom.compiler.importer.emit import cut, to_bytes
from intloom.compiler.importer.load import from_proto
from intloom.compiler.importer.model import MICROSOFT, STANDARD, Array, Constant, Model, OnnxNode, Opaque, ValueType
from intloom.compiler.importer.model_file import load_model
from intloom.compiler.importer.reinfer import infer

__all__ = [
    "MICROSOFT",
    "STANDARD",
    "Array",
    "Constant",
    "Model",
    "OnnxNode",
    "Opaque",
    "ValueType",
    "cut",
    "from_proto",
    "infer",
    "load_model",
    "to_bytes",
]
