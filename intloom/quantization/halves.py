"""Conversion of float16 models to float32, in which calibration and quantization compute."""

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from intloom.compiler.importer.subgraphs import all_graphs

_TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype"})
"""Attributes that name an element type."""


def has_halves(model: onnx.ModelProto) -> bool:
    """Whether a model has float16 inputs or constants."""
    inputs = any(v.type.tensor_type.elem_type == TensorProto.FLOAT16 for v in model.graph.input)
    return inputs or any(t.data_type == TensorProto.FLOAT16 for t in model.graph.initializer)


def in_float32(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which every float16 value is float32."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for graph in all_graphs(copy.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type == TensorProto.FLOAT16:
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        for tensor in graph.initializer:
            _widen(tensor)
        for node in graph.node:
            for attribute in node.attribute:
                _widen(attribute.t)
                if attribute.name in _TYPE_ATTRIBUTES and attribute.i == TensorProto.FLOAT16:
                    attribute.i = TensorProto.FLOAT
    return copy


def _widen(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT16:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
