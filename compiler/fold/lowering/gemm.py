"""Gemm and MatMul with constants on either side: a convolution.

Over several rows its kernel is one pixel, since rows are pixels. Over one row its kernel covers the whole image.
"""

import contextlib
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.weights import Weights, read_weights
from intloom.compiler.fold.byte_order import as_windows
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.common.convolution import convolution
from intloom.compiler.fold.lowering.common.spatial import SpatialOps, Steps
from intloom.compiler.fold.lowering.common.tokens import TokenParts, bind_tokens, read_tokens, token_results
from intloom.compiler.fold.lowering.matmul import lower_products
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.qparams import stored_constant, stored_value
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import Model, OnnxNode
from intloom.compiler.limits import LARGEST_KERNEL, LARGEST_STRIDE
from intloom.compiler.refusals import Refusal, UnsupportedPattern


@lowers("Gemm", "MatMul")
def lower_gemm(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower `x @ weights + bias` or `weights @ x`, where `x` may be a flattened image, or a MatMul of activations."""
    main, model = unit.operator, builder.model
    left = main.op == "MatMul" and stored_constant(model, main.input(0)) is not None
    stored = stored_value(model, main.input(1))
    if main.op == "MatMul" and not left and stored != main.input(1) and stored not in model.constants:
        lower_products(builder, unit)
        return
    _check_form(main)
    value, weights = main.input(int(left)), _read_matrices(model, main, left=left)
    shape, (*stack, _, depth) = model.shape(value) or (), weights.values.shape
    if left and len(shape) < 2:
        raise Refusal.DIMENSIONS("its right operand is a vector", "multiply a matrix of one column")
    if not shape or shape[-2 if left else -1] != depth:
        raise Refusal.INVALID(f"it multiplies values of shape {shape} by a matrix of {depth} rows", "correct the model")
    if prod(stack) > 1 and not prod(stack) == prod(shape[:-2]) == prod(builder.shape(unit.output)[:-2]):
        raise Refusal.BROADCAST("it repeats one operand's matrices", "expand it in the model")
    alone = prod(shape) == depth and prod(stack) == 1
    row = _row(builder, value, weights.values.reshape(-1, depth)) if alone else None
    if row is None:
        _lower_rows(builder, unit, weights, left=left)
        return
    x, kernel = _as_kernel(builder, unit, row[1], row[0])
    result = builder.tensor(unit.output, (1, len(kernel), 1, 1), builder.params(unit))
    node = convolution(builder, unit, x, Weights(kernel, weights.scale), result)
    builder.finish(unit, node, result, Target.ARRAY)


def _read_matrices(model: Model, main: OnnxNode, *, left: bool) -> Weights:
    """The constant operand, on either side, as matrices with a row for each output."""
    turned = left or main.integer("transB", 0) == 1
    weights = read_weights(model, main.input(int(not left)), channel_axis=0 if turned else 1)
    if weights.scale.ndim and (left or weights.values.ndim > 2):
        raise Refusal.WEIGHTS("its left operand, or its matrices, have several scales", "quantize them with one")
    values = weights.values
    if values.ndim < 2:
        # A vector is a row on the left and a column on the right.
        values = values.reshape((1, -1) if left else (-1, 1))
    return replace(weights, values=values if turned else values.swapaxes(-1, -2))


def _row(builder: GraphBuilder, value: str, matrix: NDArray[np.int32]) -> tuple[Operand, NDArray[np.int32]] | None:
    """A tensor with all values of a row, and the matrix with its columns in the tensor's order; None if it has others.

    An image that is transposed before it is flattened changes the order of the columns.
    """
    with contextlib.suppress(UnsupportedPattern):
        return builder.operand(value), matrix
    x, ordered = builder.operand_in_any_order(value), builder.ordered(value)
    if ordered is None or ordered.positions.size != prod(x.tensor.shape):
        return None
    columns = np.argsort(ordered.positions, axis=None)
    return x, matrix[:, columns]


def _lower_rows(builder: GraphBuilder, unit: QuantizationUnit, weights: Weights, *, left: bool) -> None:
    """Lower a product of many rows, or of columns right of the constants: a 1x1 convolution for each matrix of them."""
    filters = weights.values.reshape(-1, *weights.values.shape[-2:], 1, 1)
    undo = builder.checkpoint()
    try:
        x = read_tokens(builder, unit, unit.operator.input(int(left)), columns=left, apart=len(filters) > 1)
    except UnsupportedPattern:
        undo()
        if left or len(filters) > 1 or not _lower_windows(builder, unit, Weights(filters[0, ..., 0, 0], weights.scale)):
            raise
        return
    results = token_results(builder, unit, x, filters.shape[1])
    for number, (part, result) in enumerate(zip(x.parts, results.parts, strict=True)):
        own = Weights(filters[number % len(filters)], weights.scale)
        builder.emit(convolution(builder, unit, replace(x.operand, tensor=part), own, result), result)
    bind_tokens(builder, unit, results)
    builder.assign(unit, Target.ARRAY)


def _lower_windows(builder: GraphBuilder, unit: QuantizationUnit, weights: Weights) -> bool:
    """Lower a product of rows that are windows of an image, as of a sequence behind convolutions; False if none are."""
    x, ordered = builder.operand_in_any_order(unit.operator.input(0)), builder.ordered(unit.operator.input(0))
    assert ordered is not None  # the operand is of the graph
    count, depth = weights.values.shape
    windows = as_windows(ordered.positions.reshape(-1, depth), x.tensor.shape[2:])
    if windows is None or max(windows.kernel) > LARGEST_KERNEL or max(windows.strides) > LARGEST_STRIDE:
        return False
    filters = np.zeros((count, x.tensor.channels, *windows.kernel), np.int32)
    filters[:, *windows.taps] = weights.values
    made = replace(weights, values=filters, window=Window(windows.kernel, windows.strides, (1, 1), (0, 0, 0, 0)))
    image = replace(x.tensor, shape=(1, x.tensor.channels, *windows.counts))
    results = token_results(builder, unit, TokenParts((image,), windows.pixels), count)
    builder.emit(convolution(builder, unit, x, made, results.parts[0]), results.parts[0])
    bind_tokens(builder, unit, results)
    builder.assign(unit, Target.ARRAY)
    return True


def _check_form(main: OnnxNode) -> None:
    if main.op == "Gemm" and (main.integer("transA", 0), main.real("alpha", 1.0), main.real("beta", 1.0)) != (
        0,
        1.0,
        1.0,
    ):
        raise Refusal.SELECTION(
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
    whole = builder.join(parts, f"{name}/parts", origin=unit.origins)
    return replace(x, tensor=whole), np.concatenate(kernels, axis=1)


def _cuts(size: int) -> tuple[int, int]:
    """Size and number of equal parts of an axis that a kernel covers."""
    count = -(-size // LARGEST_KERNEL)
    return -(-size // count), count
