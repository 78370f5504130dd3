"""Tabulation: evaluate quantization units on chosen bytes, for tables and for the fits of Add and Mul."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes, evaluate, to_int8, to_stored
from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.elementwise import is_elementwise
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, read_qparams, stored_constant
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.importer import Model, OnnxNode, cut
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
    length = len(next(iter(values.values())))
    model = builder.model
    makers = {leaf: model.producers[leaf] for leaf in values}
    if unit.qoperator and not {m.inputs[0] for m in makers.values()} <= set(unit.qoperator.inputs):
        raise Refusal.BROADCAST("it combines a tensor with a constant of several values", "use a scalar")
    codes = {leaf: to_stored(data, read_qparams(model, makers[leaf]).unsigned) for leaf, data in values.items()}
    feeds = {makers[leaf].inputs[0]: data for leaf, data in codes.items()}
    # onnxruntime computes a QOperator node in integers whatever its types are.
    nodes = (unit.qoperator,) if unit.qoperator else (*(model.producers[v] for v in unit.leaves), *unit.nodes)
    part = vector_model(model.with_nodes(nodes), nodes, tuple(feeds), unit.output, length)
    return to_int8(evaluate(part, feeds, match)[0]).ravel()  # scalar constants may have more axes


def evaluate_unit(builder: GraphBuilder, unit: QuantizationUnit, leaf: str, values: Int8s) -> Int8s:
    """Results of onnxruntime for a unit, with these values of the leaf, in the shape of `values`."""
    sources = [builder.model.producers[v] for v in unit.leaves]
    source = builder.model.producers[leaf].inputs[0]
    model = builder.model if unit.qoperator is None else builder.model.with_nodes((unit.qoperator,))
    nodes = (*sources, *unit.nodes) if unit.qoperator is None else (unit.qoperator,)
    part = vector_model(model, nodes, (source,), unit.output, 1)
    part = replace(part, types={**part.types, source: ValueType(builder.model.dtype(source), values.shape)})
    return to_int8(
        evaluate(part, {source: to_stored(values, builder.operand(leaf).tensor.unsigned)}, builder.options.match)[0]
    )


def clamp_table(builder: GraphBuilder, unit: QuantizationUnit) -> Int8s | None:
    """The clamps between a unit's main operator and its QuantizeLinear, as a table on the result byte.

    Clamping and rounding commute because both are monotone, so clamping rounded values gives the same results.
    """
    if not unit.clamps:
        return None
    for node in unit.clamps:
        if any(v and v not in builder.model.constants for v in node.inputs[1:]) or not is_elementwise(
            builder.model, node
        ):
            raise Refusal.CONSTANT(
                f"the bounds of {node.name!r} are not constant scalars", "give Clip constant scalar bounds"
            )
    name = f"{unit.output}/unclamped"
    # Only `axis` goes to the DequantizeLinear: it has no attribute `saturate`, and another type is its
    # `output_dtype`.
    attributes = {k: v for k, v in unit.quantize.attributes.items() if k == "axis"}
    source = replace(
        unit.quantize,
        name=name,
        op=DEQUANTIZE,
        inputs=(name, *unit.quantize.inputs[1:]),
        outputs=(unit.unclamped,),
        attributes=attributes,
    )
    params = read_qparams(builder.model, unit.quantize)
    model = builder.model.with_nodes((source, *unit.clamps, unit.quantize), types={name: ValueType(params.dtype, None)})
    part = vector_model(model, model.nodes, (name,), unit.output, 256)
    return to_int8(evaluate(part, {name: to_stored(all_bytes(), params.unsigned)}, builder.options.match)[0]).ravel()


def vector_model(model: Model, nodes: Iterable[OnnxNode], inputs: tuple[str, ...], output: str, length: int) -> Model:
    """Extract nodes as a model whose inputs are vectors of one length."""
    # `cut` needs graph order, which the caller's order need not be.
    wanted = {n.name for n in nodes}
    part = cut(model, (n for n in model.nodes if n.name in wanted), inputs, (output,))
    types = {v: ValueType(model.dtype(v), (length,)) for v in inputs}
    return replace(part, types={**types, output: ValueType(model.dtype(output), None)})


def requant_table(builder: GraphBuilder, unit: QuantizationUnit) -> Int8s | None:
    """Table from the scale of the moved value to that of a movement operator's result; None if it is the identity."""
    leaf = unit.operator.input(0)
    source = builder.model.producers[leaf]
    before, after = read_qparams(builder.model, source), read_qparams(builder.model, unit.quantize)
    # No evaluation needed; the comparison below finds the identities that remain.
    if before.same(after) and not unit.clamps:
        return None
    tail = tuple(
        replace(n, inputs=tuple(leaf if v == unit.unclamped else v for v in n.inputs))
        for n in (*unit.clamps, unit.quantize)
    )
    model = builder.model.with_nodes((source, *tail))
    part = vector_model(model, model.nodes, (source.inputs[0],), unit.output, 256)
    table = to_int8(
        evaluate(part, {source.inputs[0]: to_stored(all_bytes(), before.unsigned)}, builder.options.match)[0]
    )
    return None if np.array_equal(table, all_bytes()) else table
