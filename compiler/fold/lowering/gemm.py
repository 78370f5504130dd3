"""Gemm and MatMul with constant weights: a convolution whose kernel covers the whole image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.weights import Weights, read_weights
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand
from intloom.compiler.fold.lowering.common.convolution import finish_convolution
from intloom.compiler.fold.lowering.common.limits import LARGEST_KERNEL
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.unsupported import UnsupportedPattern
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.importer import OnnxNode

_PLAIN = Window((1, 1), (1, 1), (1, 1), (0, 0, 0, 0))


@lowers("Gemm", "MatMul")
def lower_gemm(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower `x @ weights + bias` for one row `x`, which may be a flattened image."""
    main = unit.operator
    x = builder.operand(main.input(0))
    columns = main.op == "Gemm" and main.integer("transB", 0) == 1
    _check_form(main, x)
    weights = read_weights(builder.model, main.input(1), channel_axis=0 if columns else 1)
    if weights.values.ndim != 2:
        raise UnsupportedPattern(f"its weights have {weights.values.ndim} dimensions", "multiply by a matrix")
    matrix = weights.values if columns else weights.values.T
    if matrix.shape[1] != x.shape[1]:
        raise UnsupportedPattern(
            f"it multiplies {x.shape[1]} values by a matrix of {matrix.shape[1]} rows", "correct the model"
        )
    finish_convolution(builder, unit, x, Weights(_as_kernel(matrix, x), weights.scale), _PLAIN)


def _check_form(main: OnnxNode, x: Operand) -> None:
    if len(x.shape) != 2:
        raise UnsupportedPattern(f"its operand has shape {x.shape}", "multiply one row, of shape (1, K)")
    if main.op == "Gemm" and (main.integer("transA", 0), main.real("alpha", 1.0), main.real("beta", 1.0)) != (
        0,
        1.0,
        1.0,
    ):
        raise UnsupportedPattern(
            "it transposes its operand or scales by alpha or beta", "fold alpha and beta into the weights"
        )


def _as_kernel(matrix: NDArray[np.int32], x: Operand) -> NDArray[np.int32]:
    """Reshape the matrix to a kernel [out, channels, height, width] that covers the operand's image."""
    _, channels, height, width = x.tensor.shape
    if max(height, width) > LARGEST_KERNEL:
        raise UnsupportedPattern(
            f"it multiplies a flattened image of {height} by {width}",
            f"pool to {LARGEST_KERNEL} by {LARGEST_KERNEL} first",
        )
    return np.ascontiguousarray(matrix).reshape(matrix.shape[0], channels, height, width)
