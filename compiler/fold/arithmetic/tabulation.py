"""Evaluates the elementwise cone of a unit on chosen bytes: source of tables and of the truth behind Add and Mul."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.kernel_selection import isolate
from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes, evaluate, to_int8, to_stored
from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.elementwise import is_elementwise
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, read_qparams
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.unsupported import UnsupportedPattern
from intloom.compiler.importer import Model, OnnxNode, cut
from intloom.compiler.importer.model import ValueType
from intloom.hw.spec.arith import RoundingMode

Int8s = NDArray[np.int8]


def tensor_leaves(builder: GraphBuilder, unit: QuantizationUnit) -> tuple[str, ...]:
    """The leaves that are tensors of the graph; the others must be quantized constants of one value."""
    found = []
    for leaf in unit.leaves:
        node = builder.model.producers.get(leaf)
        stored_name = node.inputs[0] if node is not None and node.op == DEQUANTIZE else ""
        if stored_name not in builder.model.constants:
            found.append(leaf)
        elif builder.model.constants[stored_name].array.size != 1:
            raise UnsupportedPattern(
                f"{leaf!r} is a constant with many values", "use one value for all places, or quantize it as a tensor"
            )
    return tuple(found)


def tabulate(builder: GraphBuilder, unit: QuantizationUnit, values: Mapping[str, Int8s], match: RoundingMode) -> Int8s:
    """What the unit's cone gives at each place, by the runtime itself, for these integers behind its leaves."""
    length = len(next(iter(values.values())))
    frame = isolate(builder, unit, values)
    part = vector_model(frame.model, frame.model.nodes, tuple(frame.feeds), frame.output, length)
    return frame.bytes_of(evaluate(part, frame.feeds, match)[0]).ravel()  # constants of one value may have more axes


def evaluate_unit(builder: GraphBuilder, unit: QuantizationUnit, leaf: str, values: Int8s) -> Int8s:
    """What the runtime makes of a unit with these integers, in their own shape, behind the leaf."""
    sources = [builder.model.producers[v] for v in unit.leaves]
    source = builder.model.producers[leaf].inputs[0]
    model = builder.model if unit.kernel is None else builder.model.with_nodes((unit.kernel,))
    nodes = (*sources, *unit.nodes) if unit.kernel is None else (unit.kernel,)
    part = vector_model(model, nodes, (source,), unit.output, 1)
    part = replace(part, types={**part.types, source: ValueType(builder.model.dtype(source), values.shape)})
    return to_int8(evaluate(part, {source: to_stored(values, builder.operand(leaf).tensor.unsigned)}, builder.match)[0])


def clamp_table(builder: GraphBuilder, unit: QuantizationUnit) -> Int8s | None:
    """The clamps between a unit's main operator and its QuantizeLinear, as a table on the result byte.

    Cutting off commutes with rounding because both are monotone, so applying the clamps to rounded values loses
    nothing.
    """
    if not unit.clamps:
        return None
    for node in unit.clamps:
        if any(v and v not in builder.model.constants for v in node.inputs[1:]) or not is_elementwise(
            builder.model, node
        ):
            raise UnsupportedPattern(
                f"the bounds of {node.name!r} are not constant scalars", "give Clip constant scalar bounds"
            )
    name = f"{unit.output}/unclamped"
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
    return to_int8(evaluate(part, {name: to_stored(all_bytes(), params.unsigned)}, builder.match)[0]).ravel()


def vector_model(model: Model, nodes: Iterable[OnnxNode], inputs: tuple[str, ...], output: str, length: int) -> Model:
    """Some nodes as a model of their own that works on vectors of one length."""
    wanted = {n.name for n in nodes}
    part = cut(model, (n for n in model.nodes if n.name in wanted), inputs, (output,))
    types = {v: ValueType(model.dtype(v), (length,)) for v in inputs}
    return replace(part, types={**types, output: ValueType(model.dtype(output), None)})


def requant_table(builder: GraphBuilder, leaf: str, unit: QuantizationUnit) -> Int8s | None:
    """The table from the integers behind `leaf` to the unit's own, for operators that move values; None: no change."""
    source = builder.model.producers[leaf]
    before, after = read_qparams(builder.model, source), read_qparams(builder.model, unit.quantize)
    if before.same(after) and not unit.clamps:
        return None
    tail = tuple(
        replace(n, inputs=tuple(leaf if v == unit.unclamped else v for v in n.inputs))
        for n in (*unit.clamps, unit.quantize)
    )
    model = builder.model.with_nodes((source, *tail))
    part = vector_model(model, model.nodes, (source.inputs[0],), unit.output, 256)
    table = to_int8(evaluate(part, {source.inputs[0]: to_stored(all_bytes(), before.unsigned)}, builder.match)[0])
    return None if np.array_equal(table, all_bytes()) else table
