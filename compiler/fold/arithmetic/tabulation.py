"""Tabulation: evaluate quantization units on chosen bytes, for tables and for the fits of Add and Mul."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes, evaluate, to_int8, to_stored
from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.qparams import (
    QParams,
    dequantize,
    quantize,
    read_qparams,
    stored_constant,
    stored_value,
)
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.importer import Array, Model, OnnxNode, cut
from intloom.compiler.importer.model import ValueType
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.arith import RoundingMode

Int8s = NDArray[np.int8]


def tensor_leaves(builder: GraphBuilder, unit: QuantizationUnit) -> tuple[str, ...]:
    """The leaves that are tensors: of the graph, or constants. A table absorbs quantized scalar constants."""
    stored = {leaf: stored_constant(builder.model, leaf) for leaf in unit.leaves}
    return tuple(leaf for leaf, array in stored.items() if array is None or array.size != 1)


def tabulate(builder: GraphBuilder, unit: QuantizationUnit, values: Mapping[str, Int8s], match: RoundingMode) -> Int8s:
    """Results of onnxruntime for the unit's operators, elementwise over these values of its leaves.

    Raises
    ------
    UnsupportedPattern
        The unit is an operator of a TFLite file whose constant of several values cannot be replaced.
    """
    model = builder.model
    makers = {leaf: model.producers[leaf] for leaf in values}
    if unit.qoperator and not {m.inputs[0] for m in makers.values()} <= set(unit.qoperator.inputs):
        raise Refusal.BROADCAST("it combines a tensor with a constant of several values", "use a scalar")
    feeds = {m.inputs[0]: to_stored(values[leaf], read_qparams(model, m).unsigned) for leaf, m in makers.items()}
    # Scalar constants may have more axes.
    return evaluate_nodes(model, _nodes(model, unit), feeds, unit.output, match).ravel()


def _nodes(model: Model, unit: QuantizationUnit) -> Sequence[OnnxNode]:
    """What computes a unit; onnxruntime computes a QOperator node in integers whatever its types are."""
    return (unit.qoperator,) if unit.qoperator else (*(model.producers[v] for v in unit.leaves), *unit.nodes)


def evaluate_unit(builder: GraphBuilder, unit: QuantizationUnit, leaf: str, values: Int8s) -> Int8s:
    """Results of onnxruntime for a unit, with these values of the leaf, in the shape of `values`."""
    feeds = {stored_value(builder.model, leaf): to_stored(values, builder.operand_in_any_order(leaf).params.unsigned)}
    return evaluate_nodes(builder.model, _nodes(builder.model, unit), feeds, unit.output, builder.options.match)


def clamp_table(builder: GraphBuilder, unit: QuantizationUnit) -> Int8s | None:
    """The clamps between a unit's main operator and its QuantizeLinear, as a table on the result byte.

    Clamping and rounding commute because both are monotone, so clamping rounded values gives the same results.
    """
    return _stored_again(builder, unit, builder.params(unit)) if unit.clamps else None


def requant_table(builder: GraphBuilder, unit: QuantizationUnit) -> Int8s | None:
    """Table from the scale of the moved value to that of a movement operator's result; None if it is the identity."""
    source = builder.model.producers[unit.operator.input(0)]
    table = _stored_again(builder, unit, read_qparams(builder.model, source))
    return None if np.array_equal(table, all_bytes()) else table


def _stored_again(builder: GraphBuilder, unit: QuantizationUnit, before: QParams) -> Int8s:
    """For each byte with the parameters `before`, what the unit's clamps and QuantizeLinear make of its real value."""
    after = builder.params(unit)
    builder.tensor(unit.output, (1, 1, 1, 1), after)  # one scale, and bytes
    values = dequantize(to_stored(all_bytes(), before.unsigned), before)
    for node in unit.clamps:
        values = np.clip(values, *_bounds(builder.model, node))
    return (quantize(values, after) - 128 * after.unsigned).astype(np.int8)


def _bounds(model: Model, node: OnnxNode) -> tuple[Array | float, Array | float]:
    """Smallest and largest result of a Relu or Clip; the bounds of a Clip are attributes before opset 11."""
    if node.op == "Relu":
        return 0.0, np.inf
    given = [model.constant(v) for v in node.inputs[1:] if v]
    if any(array is None or array.size != 1 or np.isnan(array).any() for array in given):
        raise Refusal.CONSTANT(
            f"the bounds of {node.name!r} are not constant scalars", "give Clip constant scalar bounds"
        )
    low, high = (model.constant(node.input(k)) for k in (1, 2))
    return (
        node.real("min", -np.inf) if low is None else low.reshape(()),
        node.real("max", np.inf) if high is None else high.reshape(()),
    )


def evaluate_nodes(
    model: Model, nodes: Sequence[OnnxNode], feeds: Mapping[str, Array], output: str, match: RoundingMode
) -> Int8s:
    """The bytes of `output` that nodes compute from stored values, whose shapes are those of `feeds`."""
    # Two leaves may come from one DequantizeLinear.
    part = cut(model, {n.name: n for n in nodes}.values(), feeds, (output,))
    types = {v: ValueType(model.dtype(v), values.shape) for v, values in feeds.items()}
    types[output] = ValueType(model.dtype(output), None)
    return to_int8(evaluate(replace(part, types=types), feeds, match)[0])
