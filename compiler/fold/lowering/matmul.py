"""MatMul of two activations: one product for each matrix, with one operand as the weights of the array.

The array sums over channels. An operand that has its sums over pixels is transposed by a product with the identity
matrix: its channels become pixels, its pixels channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from intloom.compiler.fold.arithmetic.tabulation import clamp_table
from intloom.compiler.fold.arithmetic.weights import requantizer_scale
from intloom.compiler.fold.byte_order import Matrices, matrices
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.common.tokens import TokenParts, bind_tokens, join_parts, ordered_results
from intloom.compiler.fold.lowering.common.transposition import transpose
from intloom.compiler.fold.patterns.data_movement import is_data_movement
from intloom.compiler.fold.patterns.qparams import is_dequantize, is_quantize
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import Model
from intloom.compiler.ir import MatMul, Tensor
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.arith import Scale

_LARGEST_SUM = (1 << 31) - 1


@dataclass(frozen=True)
class _Side:
    """An operand: its matrices, and whether the sums are over its channels."""

    operand: Operand
    matrices: Matrices
    sums_channels: bool
    free: int
    """Size of the axis that is not summed over."""


def lower_products(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a product of two activations."""
    main = unit.operator
    _shape_host_tensors(builder, main.inputs[:2])
    a, b = (_side(builder, value, rows_summed=k == 1) for k, value in enumerate(main.inputs[:2]))
    if len(a.matrices.channels) != len(b.matrices.channels):
        raise Refusal.BROADCAST("it repeats one operand's matrices", "expand it in the model")
    result = builder.params(unit)
    plain = builder.tensor(unit.output, (1, 1, 1, 1), result)
    # The left operand moves, unless only the right one has its sums over channels, or has what a Softmax weighs.
    swapped = b.sums_channels and (not a.sums_channels or _is_softmax(builder.model, main.inputs[0]))
    moving, stationary = (b, a) if swapped else (a, b)
    scale = _scale(moving.operand.tensor, stationary.operand.tensor, plain)
    table = clamp_table(builder, unit)
    product = _Product(builder, unit, scale, plain, None if table is None else table.tobytes())
    parts = tuple(builder.tensors[product.emit(k, moving, stationary)] for k in range(len(a.matrices.channels)))
    if swapped:
        builder.bind(unit.output, join_parts(builder, unit, parts, unit.output).name)
    else:
        made = TokenParts(parts, np.arange(parts[0].height * parts[0].width))
        bind_tokens(builder, unit, ordered_results(builder, unit, made))
    builder.assign(unit, Target.ARRAY, "one operand is the weights")


def _is_softmax(model: Model, value: str) -> bool:
    """Whether a value holds the results of a Softmax."""
    node = model.producers.get(value)
    while node is not None and (is_quantize(node) or is_dequantize(node) or is_data_movement(node)):
        node = model.producers.get(node.input(0))
    return node is not None and node.op == "Softmax"


def _shape_host_tensors(builder: GraphBuilder, values: Sequence[str]) -> None:
    """Give tensors that the host computes, and nothing reads yet, rows as channels and columns as pixels."""
    read = {name for node in builder.nodes.values() for name in node.inputs}
    for value, other in zip(values, reversed(values), strict=True):
        own, facing = builder.ordered(value), builder.ordered(other)
        if own is None or facing is None or own.tensor not in builder.host_computed or own.tensor in read:
            continue
        tensor, like = builder.tensors[own.tensor], builder.tensors[facing.tensor]
        columns = own.shape[-1]
        # As many pixels as the other operand has belong to the same image.
        size = (like.height, like.width) if like.height * like.width == columns else (1, columns)
        channels = own.positions.size // columns
        builder.tensors[own.tensor] = replace(tensor, shape=(1, channels, *size))


def _side(builder: GraphBuilder, value: str, *, rows_summed: bool) -> _Side:
    operand, ordered = builder.operand_in_any_order(value), builder.ordered(value)
    assert ordered is not None  # the host computes no operand of the graph
    tensor = operand.tensor
    own = matrices(ordered, tensor.height * tensor.width)
    rows, columns = ordered.shape[-2:]
    return _Side(operand, own, own.rows_are_channels == rows_summed, columns if rows_summed else rows)


def _scale(a: Tensor, b: Tensor, result: Tensor) -> Scale:
    """The scale of the sums, as onnxruntime computes it."""
    factor = np.float32(np.float32(a.scale) * np.float32(b.scale)) / np.float32(result.scale)
    return requantizer_scale(float(factor))


@dataclass(frozen=True)
class _Product:
    """Emits the products of the matrices of one unit."""

    builder: GraphBuilder
    unit: QuantizationUnit
    scale: Scale
    plain: Tensor
    table: bytes | None

    def emit(self, number: int, moving: _Side, stationary: _Side) -> str:
        """The product of one pair of matrices."""
        base = f"{self.plain.name}/{number}"
        left = self._matrix(moving, number, f"{base}/moving")
        right = self._matrix(stationary, number, f"{base}/weights")
        channels = left.channels
        if channels * 255 * 255 > _LARGEST_SUM:
            raise Refusal.RANGE(f"sums of {channels} products may leave 32 bits", "split the product")
        if left.zero_point and not self.builder.options.weight_sums:
            raise Refusal.HARDWARE(
                f"the hardware lacks products of two tensors with a zero point ({left.zero_point})",
                "set weight_sums = true",
            )
        node = MatMul(
            name=f"{unit_name(self.unit)}/{number}",
            inputs=(left.name, right.name),
            output=base,
            mantissa=self.scale.mantissa,
            shift=self.scale.shift,
            zp_a=left.zero_point,
            zp_b=right.zero_point,
            zp_out=self.plain.zero_point,
            table=self.table,
            origin=self.unit.origins,
        )
        self.builder.emit(node, replace(self.plain, name=base, shape=(1, right.height * right.width, *left.shape[2:])))
        return base

    def _matrix(self, side: _Side, number: int, name: str) -> Tensor:
        """A matrix with its sums over channels."""
        part = self.builder.tensors[self.builder.channels(side.matrices.tensor, *side.matrices.channels[number])]
        if side.sums_channels:
            return part
        return transpose(self.builder, part, name, self.unit.origins)
