"""Evaluates the elementwise cone of a unit on chosen bytes: source of tables and of the truth behind Add and Mul."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.kernels import framed
from intloom.compiler.fold.lowering import Lowering, Refusal
from intloom.compiler.fold.oracle import evaluate, every_byte, internal, stored
from intloom.compiler.fold.qparams import DEQUANTIZE, read_qparams
from intloom.compiler.fold.units import Unit
from intloom.compiler.importer import Model, OnnxNode, cut
from intloom.compiler.importer.model import ValueType
from intloom.hw.spec.arith import Match

# fmt: off
ELEMENTWISE = frozenset({
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Div",
    "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Max",
    "Min", "Mish", "Mul", "Neg", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
    "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "FastGelu",
    "QuickGelu",
})
# fmt: on
"""Operators whose result at a place depends on the operands at that place alone."""

Int8s = NDArray[np.int8]


def is_elementwise(model: Model, node: OnnxNode) -> bool:
    """The node works place by place, and its constants are the same everywhere."""
    if node.op not in ELEMENTWISE or len(node.outputs) != 1:
        return False
    return all(model.constants[v].array.size == 1 for v in node.inputs if v in model.constants)


def tensor_leaves(low: Lowering, unit: Unit) -> tuple[str, ...]:
    """The leaves that are tensors of the graph; the others must be quantised constants of one value."""
    found = []
    for leaf in unit.leaves:
        node = low.model.producers.get(leaf)
        stored_name = node.inputs[0] if node is not None and node.op == DEQUANTIZE else ""
        if stored_name not in low.model.constants:
            found.append(leaf)
        elif low.model.constants[stored_name].array.size != 1:
            raise Refusal(
                f"{leaf!r} is a constant with many values", "use one value for all places, or quantise it as a tensor"
            )
    return tuple(found)


def tabulate(low: Lowering, unit: Unit, values: Mapping[str, Int8s], match: Match) -> Int8s:
    """What the unit's cone gives at each place, by the runtime itself, for these integers behind its leaves."""
    length = len(next(iter(values.values())))
    frame = framed(low, unit, values)
    part = vector_part(frame.model, frame.model.nodes, tuple(frame.feeds), frame.output, length)
    return frame.bytes_of(evaluate(part, frame.feeds, match)[0]).ravel()  # constants of one value may have more axes


def unit_on(low: Lowering, unit: Unit, leaf: str, values: Int8s) -> Int8s:
    """What the runtime makes of a unit with these integers, in their own shape, behind the leaf."""
    sources = [low.model.producers[v] for v in unit.leaves]
    source = low.model.producers[leaf].inputs[0]
    model = low.model if unit.kernel is None else low.model.with_nodes((unit.kernel,))
    nodes = (*sources, *unit.nodes) if unit.kernel is None else (unit.kernel,)
    part = vector_part(model, nodes, (source,), unit.output, 1)
    part = replace(part, types={**part.types, source: ValueType(low.model.dtype(source), values.shape)})
    return internal(evaluate(part, {source: stored(values, low.operand(leaf).tensor.unsigned)}, low.match)[0])


def clamp_table(low: Lowering, unit: Unit) -> Int8s | None:
    """The clamps between a unit's main operator and its QuantizeLinear, as a table on the result byte.

    Cutting off commutes with rounding because both are monotone, so applying the clamps to rounded values loses
    nothing.
    """
    if not unit.chain:
        return None
    for node in unit.chain:
        if any(v and v not in low.model.constants for v in node.inputs[1:]) or not is_elementwise(low.model, node):
            raise Refusal(f"the bounds of {node.name!r} are not constant scalars", "give Clip constant scalar bounds")
    name = f"{unit.output}/unclamped"
    attributes = {k: v for k, v in unit.quantize.attributes.items() if k == "axis"}
    source = replace(
        unit.quantize,
        name=name,
        op=DEQUANTIZE,
        inputs=(name, *unit.quantize.inputs[1:]),
        outputs=(unit.body,),
        attributes=attributes,
    )
    params = read_qparams(low.model, unit.quantize)
    model = low.model.with_nodes((source, *unit.chain, unit.quantize), types={name: ValueType(params.dtype, None)})
    part = vector_part(model, model.nodes, (name,), unit.output, 256)
    return internal(evaluate(part, {name: stored(every_byte(), params.unsigned)}, low.match)[0]).ravel()


def vector_part(model: Model, nodes: Iterable[OnnxNode], inputs: tuple[str, ...], output: str, length: int) -> Model:
    """Some nodes as a model of their own that works on vectors of one length."""
    wanted = {n.name for n in nodes}
    part = cut(model, (n for n in model.nodes if n.name in wanted), inputs, (output,))
    types = {v: ValueType(model.dtype(v), (length,)) for v in inputs}
    return replace(part, types={**types, output: ValueType(model.dtype(output), None)})


def requant_table(low: Lowering, leaf: str, unit: Unit) -> Int8s | None:
    """The table from the integers behind `leaf` to the unit's own, for operators that move values; None: no change."""
    source = low.model.producers[leaf]
    before, after = read_qparams(low.model, source), read_qparams(low.model, unit.quantize)
    if before.same(after) and not unit.chain:
        return None
    tail = tuple(
        replace(n, inputs=tuple(leaf if v == unit.body else v for v in n.inputs)) for n in (*unit.chain, unit.quantize)
    )
    model = low.model.with_nodes((source, *tail))
    part = vector_part(model, model.nodes, (source.inputs[0],), unit.output, 256)
    table = internal(evaluate(part, {source.inputs[0]: stored(every_byte(), before.unsigned)}, low.match)[0])
    return None if np.array_equal(table, every_byte()) else table
