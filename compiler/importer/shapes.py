"""ONNX shape inference, with a check of the inferred sizes."""

from __future__ import annotations

import onnx

from intloom.common.errors import ModelError


def infer_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Infer the shapes of all values."""
    inferred: onnx.ModelProto = onnx.shape_inference.infer_shapes(
        proto, check_type=True, strict_mode=True, data_prop=True
    )
    _check_sizes(inferred.graph)
    return inferred


def _check_sizes(graph: onnx.GraphProto) -> None:
    """Check that no inferred size is negative; ONNX shape inference does not check this."""
    for value in graph.value_info:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value < 0:
                raise ModelError(
                    f"dimension {axis} of {value.name!r} must not be negative, not {dim.dim_value}: correct the model"
                )
