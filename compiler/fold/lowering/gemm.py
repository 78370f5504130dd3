"""Gemm and MatMul with constant weights: a convolution whose kernel covers the whole image."""

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.weights import Weights, read_weights
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.common.convolution import finish_convolution
from intloom.compiler.fold.lowering.common.limits import LARGEST_KERNEL
from intloom.compiler.fold.lowering.common.spatial import SpatialOps, Steps
from intloom.compiler.fold.lowering.matmul import lower_products
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.qparams import is_dequantize
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.unsupported import UnsupportedPattern
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.importer import OnnxNode
from intloom.compiler.ir import Concat

_PLAIN = Window((1, 1), (1, 1), (1, 1), (0, 0, 0, 0))


@lowers("Gemm", "MatMul")
def lower_gemm(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower `x @ weights + bias` for one row `x`, which may be a flattened image, and a MatMul of two activations."""
    main = unit.operator
    if main.op == "MatMul" and _is_activation(builder, main.input(1)):
        lower_products(builder, unit)
        return
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
    x, kernel = _as_kernel(builder, unit, matrix, x)
    finish_convolution(builder, unit, x, Weights(kernel, weights.scale), _PLAIN)


def _is_activation(builder: GraphBuilder, value: str) -> bool:
    node = builder.model.producers.get(value)
    return node is not None and is_dequantize(node) and node.inputs[0] not in builder.model.constants


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


def _as_kernel(
    builder: GraphBuilder, unit: QuantizationUnit, matrix: NDArray[np.int32], x: Operand
) -> tuple[Operand, NDArray[np.int32]]:
    """The operand's image and a kernel [out, channels, height, width] that covers it.

    An image that is larger than a kernel is cut into equal parts, which become channels: the sum stays one sum.
    """
    _, channels, height, width = x.tensor.shape
    kernel = np.ascontiguousarray(matrix).reshape(matrix.shape[0], channels, height, width)
    if max(height, width) <= LARGEST_KERNEL:
        return x, kernel
    (rows, down), (columns, right) = _cuts(height), _cuts(width)
    mover = SpatialOps(builder, unit.origins)
    missing = (down * rows - height, right * columns - width)
    image, name = x.tensor, unit_name(unit)
    if any(missing):
        # Padded pixels have weights of zero; the zero point keeps them out of the correction in the bias, too.
        image = mover.pad(image, (0, 0, *missing), x.tensor.zero_point, f"{name}/padded")
        kernel = np.pad(kernel, ((0, 0), (0, 0), (0, missing[0]), (0, missing[1])))
    parts, kernels = [], []
    for i, j in product(range(down), range(right)):
        top, left = i * rows, j * columns
        chosen = Steps(top, top + rows), Steps(left, left + columns)
        parts.append(mover.pick(image, *chosen, f"{name}/part{i}_{j}"))
        kernels.append(kernel[:, :, top : top + rows, left : left + columns])
    joined = f"{name}/parts"
    node = Concat(name=joined, inputs=tuple(p.name for p in parts), output=joined, origin=unit.origins)
    whole = replace(x.tensor, name=joined, shape=(1, channels * len(parts), rows, columns))
    builder.emit(node, whole)
    return replace(x, tensor=whole), np.concatenate(kernels, axis=1)


def _cuts(size: int) -> tuple[int, int]:
    """Size and number of equal parts of an axis that a kernel covers."""
    count = -(-size // LARGEST_KERNEL)
    return -(-size // count), count
