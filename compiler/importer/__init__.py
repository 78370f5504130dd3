"""The importer: the only package that touches ONNX protobufs."""

from .emit import cut, to_bytes
from .load import from_proto, load_model
from .model import MICROSOFT, STANDARD, Array, Constant, Model, OnnxNode, Opaque, ValueType
from .reinfer import infer

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
