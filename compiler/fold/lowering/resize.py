"""Resize and Upsample: enlargement by whole factors, nearest-neighbor and, where it is exact, linear.

onnxruntime interpolates in float. With odd factors and one scale, no result is half way between two codes: the nearest
such point is 1/18 away for a factor of 3 along both axes, and float errors are below 10^-4. With scales and factors
that are powers of two, float arithmetic is exact, and ties go to even as in the array. Other ties are irregular.
"""

from dataclasses import replace
from itertools import zip_longest
from math import frexp, prod

import numpy as np

from intloom.compiler.fold.arithmetic.weights import Weights
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.common.convolution import biased_convolution
from intloom.compiler.fold.lowering.common.data_movement import finish_data_movement
from intloom.compiler.fold.lowering.common.spatial import SpatialOps
from intloom.compiler.fold.lowering.pad import repeated
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.window import Window
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import Model, OnnxNode
from intloom.compiler.importer.interpolation import TRANSFORMS, linear_axis
from intloom.compiler.ir import Resize, Tensor
from intloom.compiler.limits import LARGEST_FACTOR
from intloom.compiler.refusals import Refusal

_LARGEST_INTERPOLATION = 4
_HALF = 0.5
"""The mantissa of a power of two."""


@lowers("Resize", "Upsample")
def lower_resize(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower an enlargement in which output pixel `i` is input pixel `i // factor`, or a linear one without ties."""
    main = unit.operator
    x, result = builder.image(main.input(0)), builder.result(unit)
    size, wanted = x.tensor.shape, result.shape
    factors = (wanted[2] // size[2], wanted[3] // size[3])
    if wanted != (1, size[1], size[2] * factors[0], size[3] * factors[1]):
        raise Refusal.RESIZE(f"it resizes {size} to {wanted}", "enlarge height and width by whole factors")
    _check_scales(builder.model, main, factors)
    mode = main.text("mode", "nearest")
    if mode == "linear" and size[2:] != (1, 1):
        _interpolate(builder, unit, x, result, factors)
        return
    # All results of a linear enlargement of one pixel, as after a global average, are that pixel.
    if mode not in ("nearest", "linear"):
        raise Refusal.RESIZE(f"it interpolates ({mode})", "use mode nearest")
    for index, factor in enumerate(factors):
        if not np.array_equal(_picked(main, size[2 + index], factor), np.arange(wanted[2 + index]) // factor):
            raise Refusal.RESIZE(
                "its rounding of coordinates does not repeat each pixel",
                "use coordinate_transformation_mode asymmetric and nearest_mode floor",
            )
    mover, name = SpatialOps(builder, unit.origins), unit_name(unit)
    *steps, last = zip_longest(_steps(factors[0]), _steps(factors[1]), fillvalue=1)
    tensor = x.tensor
    for number, step in enumerate(steps):
        node = Resize(name=f"{name}/step{number}", inputs=(tensor.name,), output=f"{name}/step{number}", factors=step)
        tensor = mover.emit(node, tensor, (tensor.height * step[0], tensor.width * step[1]))
    node = Resize(name=name, inputs=(tensor.name,), output="", factors=last)
    finish_data_movement(builder, unit, node, Target.VECTOR)


def _interpolate(
    builder: GraphBuilder, unit: QuantizationUnit, x: Operand, result: Tensor, factors: tuple[int, int]
) -> None:
    """Lower to a transposed convolution of the image with its border twice, if no result is an irregular tie."""
    transform = _transform(unit.operator)
    if transform not in TRANSFORMS or max(factors) > _LARGEST_INTERPOLATION:
        raise Refusal.RESIZE(
            f"it interpolates by {factors} with {transform}",
            f"use half_pixel or asymmetric and factors up to {_LARGEST_INTERPOLATION}, or mode nearest",
        )
    odd = all(f % 2 for f in factors) and x.tensor.scale == result.scale
    if not odd and not all(frexp(n)[0] == _HALF for n in (x.tensor.scale, result.scale, *factors)):
        raise Refusal.RESIZE(
            "it interpolates, and onnxruntime rounds results between two codes irregularly",
            "`intloom quantize` the float model, enlarge by 3, enlarge by 2 or 4 with scales that are powers of two, "
            "or use mode nearest",
        )
    (rows, (top, bottom)), (columns, (left, right)) = (linear_axis(f, transform) for f in factors)
    # Weights along an axis are multiples of the factor's reciprocal, with centers and even factors of half of it.
    power = prod(f if f % 2 or transform == "asymmetric" else 2 * f for f in factors)
    filters = np.rint(np.multiply.outer(rows, columns) * power).astype(np.int32)
    channels = x.tensor.channels
    padded = repeated(
        SpatialOps(builder, unit.origins), x.tensor, ((1, 1), (1, 1)), f"{result.name}/padded", reflected=False
    )
    window = Window(filters.shape, factors, (1, 1), (top, left, bottom, right))
    values = np.broadcast_to(filters, (channels, 1, *filters.shape)).copy()
    weights = Weights(values, np.array(1 / power, np.float32), window, channels, (0, 0))
    node = biased_convolution(builder, unit, replace(x, tensor=padded), weights, None, result)
    builder.finish(unit, node, result, Target.ARRAY)


def _transform(node: OnnxNode) -> str:
    """How the node maps coordinates."""
    return node.text("coordinate_transformation_mode", "half_pixel" if node.op == "Resize" else "asymmetric")


def _steps(factor: int) -> list[int]:
    """Factors of a copy whose product is a factor."""
    steps = [1] if factor == 1 else []
    while factor > 1:
        steps.append(next((f for f in range(LARGEST_FACTOR, 1, -1) if factor % f == 0), 0))
        if not steps[-1]:
            raise Refusal.RESIZE(f"it repeats pixels {factor} times", f"use products of 2 to {LARGEST_FACTOR}")
        factor //= steps[-1]
    return steps


def _check_scales(model: Model, node: OnnxNode, factors: tuple[int, int]) -> None:
    """Check the scales: fractional scales may give integer sizes but select other pixels."""
    scales = model.constant(node.input(1 if node.op == "Upsample" else 2))
    if scales is not None and scales.size == 4 and (float(scales[2]), float(scales[3])) != factors:
        raise Refusal.RESIZE(f"its scales are {scales.tolist()}", "enlarge height and width by whole factors")


def _picked(node: OnnxNode, size: int, factor: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Input coordinate of each output coordinate along one axis, as ONNX defines it."""
    out = np.arange(size * factor, dtype=np.float64)
    transform = _transform(node)
    if transform == "asymmetric":
        coordinate = out / factor
    elif transform in ("half_pixel", "half_pixel_symmetric") or (
        transform == "pytorch_half_pixel" and size * factor > 1
    ):
        coordinate = (out + 0.5) / factor - 0.5
    elif transform == "pytorch_half_pixel":
        coordinate = out * 0
    elif transform == "align_corners":
        coordinate = out * (size - 1) / max(1, size * factor - 1)
    else:
        raise Refusal.RESIZE(
            f"its coordinate transformation is {transform}", "use coordinate_transformation_mode asymmetric"
        )
    return np.clip(_rounded(node, coordinate), 0, size - 1).astype(np.int64)


def _rounded(
    node: OnnxNode, coordinate: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    mode = node.text("nearest_mode", "round_prefer_floor" if node.op == "Resize" else "floor")
    if mode == "floor":
        return np.floor(coordinate)
    if mode == "ceil":
        return np.ceil(coordinate)
    return np.ceil(coordinate - 0.5) if mode == "round_prefer_floor" else np.floor(coordinate + 0.5)
