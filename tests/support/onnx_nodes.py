"""ONNX's node tests as models that a front end can fold."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.test_case import TestCase

from intloom.compiler.importer.load import NEWEST_OPSET

QUANTIZED = (
    "quantizelinear", "dequantizelinear", "dynamicquantizelinear", "qlinearconv", "qlinearmatmul", "convinteger",
    "matmulinteger",
)  # fmt: skip
"""Modules of the quantized operators."""


def data_sets(case: TestCase) -> Iterator[tuple[onnx.ModelProto, list[Any], list[Any]]]:
    """The model, its inputs and its outputs; weights, scales and zero points of quantized operators are constants."""
    for inputs, outputs in case.data_sets:
        model = onnx.ModelProto.FromString(case.model.SerializeToString())
        count = len(inputs)
        if any(q in case.name for q in QUANTIZED):
            count = 1
            for opset in model.opset_import:
                opset.version = min(opset.version, NEWEST_OPSET)
        for given, value in zip(model.graph.input[count:], inputs[count:], strict=True):
            tensor = value if isinstance(value, onnx.TensorProto) else onnx.numpy_helper.from_array(np.asarray(value))
            model.graph.initializer.add().CopyFrom(tensor)
            model.graph.initializer[-1].name = given.name
        del model.graph.input[count:]
        yield model, list(inputs[:count]), list(outputs)
