"""Elementwise operators: a table where the result depends on one byte, else an Add or Mul proved over all pairs."""

from dataclasses import replace
from math import prod

import numpy as np

from intloom.compiler.fold.arithmetic.affine_fit import Points, SampledFunction, closest_affine, fit_affine_with_table
from intloom.compiler.fold.arithmetic.irregular_ties import emit_bracket, fit_bracket
from intloom.compiler.fold.arithmetic.pair_correction import correct
from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes
from intloom.compiler.fold.arithmetic.tabulation import Int8s, clamp_table, tabulate, tensor_leaves
from intloom.compiler.fold.byte_order import Ordered
from intloom.compiler.fold.graph_builder import ByteFunction, GraphBuilder, Operand, unit_name
from intloom.compiler.fold.patterns.elementwise import is_elementwise
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.unsupported import UnsupportedPattern
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Add, Mul, Tensor
from intloom.hw.spec.arith import Affine, RoundingMode

_OTHER_MATCH = {RoundingMode.ORT: RoundingMode.EXACT, RoundingMode.EXACT: RoundingMode.ORT}
_SIGNS = {"Add": 1.0, "Sum": 1.0, "Sub": -1.0}


def is_elementwise_unit(builder: GraphBuilder, unit: QuantizationUnit) -> bool:
    """Whether every operator of the unit is elementwise; a unit without operators (a change of scale) is too."""
    return all(is_elementwise(builder.model, n) for n in unit.operators)


def lower_elementwise(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a unit whose operators are elementwise."""
    leaves = tensor_leaves(builder, unit)
    if not leaves:
        raise UnsupportedPattern("it computes a constant", "fold constants in the exporter")
    # Of a table, the order of the bytes does not matter.
    look_up = builder.operand_in_any_order if len(leaves) == 1 else builder.operand
    operands = {leaf: look_up(leaf) for leaf in leaves}
    shape = builder.model.shape(unit.output)
    for leaf, operand in operands.items():
        if operand.shape != shape and not _is_pixel(operand, shape):
            raise UnsupportedPattern(
                f"{leaf!r} of shape {operand.shape} is broadcast",
                "expand it in the model, or use a scalar",
            )
    names = {o.tensor.name for o in operands.values()}
    roots = {builder.function(n).root for n in names}
    if len(roots) == 1:
        _lower_table(builder, unit, operands)
    elif len(names) == 2 and len(leaves) == 2:
        _lower_pair(builder, unit, operands)
    else:
        raise UnsupportedPattern(
            f"it combines {len(names)} tensors without quantizing between", "quantize after every such operator"
        )


def _is_pixel(operand: Operand, shape: tuple[int, ...] | None) -> bool:
    """Whether the operand is one pixel that is broadcast over the image."""
    wide = shape is not None and len(shape) == len(operand.shape) > 2 and shape[:2] == operand.shape[:2]
    return wide and operand.has_model_shape and set(operand.shape[2:]) == {1}


def _result(builder: GraphBuilder, unit: QuantizationUnit, operands: dict[str, Operand]) -> Tensor:
    """Describe the result in the shape of its operands, which may be views."""
    tensors = [o.tensor for o in operands.values()]
    plain = builder.result(unit)
    # A pixel is broadcast over the other operand.
    shape = max((t.shape for t in tensors), key=prod)
    return Tensor(plain.name, shape, plain.scale, plain.zero_point, plain.unsigned)


def _lower_table(builder: GraphBuilder, unit: QuantizationUnit, operands: dict[str, Operand]) -> None:
    names = {o.tensor.name for o in operands.values()}
    functions = {leaf: builder.function(o.tensor.name) for leaf, o in operands.items()}
    root = next(iter(functions.values())).root
    result = _result(builder, unit, operands)
    if not _is_plain(builder, operands):
        # Only a tensor in the model's order has the name of the model's value.
        result = replace(result, name=f"{result.name}/any_order")
    if len(names) == 1:
        # The node's table maps the operand; the recorded function is composed, so that it maps the root.
        source = next(iter(names))
        table = tabulate(builder, unit, dict.fromkeys(operands, all_bytes()), builder.match)
        composed = table[builder.function(source).table.view(np.uint8)]
    else:
        source = root
        table = composed = tabulate(builder, unit, {leaf: f.table for leaf, f in functions.items()}, builder.match)
    before = builder.tensors[source]
    if np.array_equal(table, all_bytes()) and (before.scale, before.zero_point) == (result.scale, result.zero_point):
        builder.bind(unit.output, source)
        builder.assign(unit, Target.PLACEMENT, "identity")
        _keep_order(builder, unit, operands, source)
        return
    builder.functions[result.name] = ByteFunction(root, composed)
    node = builder.table_node(unit_name(unit), source, table, result.name)
    builder.finish(unit, node, result, Target.TABLE)
    _keep_order(builder, unit, operands, result.name)


def _keep_order(builder: GraphBuilder, unit: QuantizationUnit, operands: dict[str, Operand], tensor: str) -> None:
    """Give the result in `tensor` the order of the only operand."""
    order = builder.ordered(next(iter(operands)))
    if order is not None and not _is_plain(builder, operands):
        del builder.views[unit.output]
        builder.orders[unit.output] = Ordered(tensor, order.positions)


def _is_plain(builder: GraphBuilder, operands: dict[str, Operand]) -> bool:
    """Whether the tensors hold the operands in the model's order; of several, all do."""
    return builder.model.producers[next(iter(operands))].inputs[0] in builder.views


def _lower_pair(builder: GraphBuilder, unit: QuantizationUnit, operands: dict[str, Operand]) -> None:
    main = unit.main
    (leaf_a, a), (leaf_b, b) = operands.items()
    if main is None or len(unit.operators) != 1 + len(unit.clamps) or main.op not in (*_SIGNS, "Mul"):
        raise UnsupportedPattern(
            "it combines two tensors with several operators without quantizing between", "quantize after every operator"
        )
    # The leaves are in the order of the search for them, which may not be that of the operator's inputs.
    if main.inputs[0] == leaf_b:
        leaf_a, leaf_b, a, b = leaf_b, leaf_a, b, a
    same = a.tensor.shape == b.tensor.shape
    if not same and not (a.has_model_shape and b.has_model_shape):
        raise UnsupportedPattern("its operands are views of different shapes", "reshape both to the same shape")
    result = _result(builder, unit, operands)
    one, two = (m.ravel() for m in np.meshgrid(all_bytes(), all_bytes(), indexing="ij"))
    pairs = {leaf_a: one, leaf_b: two}
    truth = tabulate(builder, unit, pairs, builder.match).astype(np.int64)
    # Evaluated with the other optimization level too, only for a warning.
    if not np.array_equal(truth, tabulate(builder, unit, pairs, _OTHER_MATCH[builder.match])):
        builder.mode_dependent.append(main.name)
    clamps = clamp_table(builder, unit)
    x1, x2, ratios = _linear_form(main.op, (a, b), result, one.astype(np.int64), two.astype(np.int64))
    fitted = fit_affine_with_table(x1, x2, truth, ratios, clamps)
    if fitted is not None:
        builder.finish(
            unit, _pair_node(unit, (a, b), result, *fitted), result, Target.VECTOR, "proved over 65,536 pairs"
        )
        return
    bracket = fit_bracket(SampledFunction(x1, x2, truth, clamps), ratios[0]) if main.op == "Mul" else None
    if bracket is not None:
        rough = _pair_node(unit, (a, b), result, bracket.low, None)
        assert isinstance(rough, Mul)
        emit_bracket(builder, replace(rough, origin=unit.origins), result, bracket, clamps)
        builder.bind(unit.output, result.name)
        builder.assign(unit, Target.VECTOR, "proved over 65,536 pairs, rounding ties by a table")
        return
    affine, missing = closest_affine(x1, x2, truth, ratios, clamps)
    correct(builder, unit, _pair_node(unit, (a, b), result, affine, clamps), result, missing.reshape(256, 256))


def _linear_form(
    op: str, operands: tuple[Operand, Operand], result: Tensor, one: Points, two: Points
) -> tuple[Points, Points, tuple[float, float]]:
    """The terms of the affine operation, and their real factors."""
    a, b = (o.tensor for o in operands)
    if op == "Mul":
        product = (one - a.zero_point) * (two - b.zero_point)
        return product, np.zeros_like(product), (a.scale * b.scale / result.scale, 0.0)
    return one, two, (a.scale / result.scale, _SIGNS[op] * b.scale / result.scale)


def _pair_node(
    unit: QuantizationUnit, operands: tuple[Operand, Operand], result: Tensor, affine: Affine, clamps: Int8s | None
) -> Add | Mul:
    a, b = (o.tensor for o in operands)
    name, inputs, table = unit_name(unit), (a.name, b.name), None if clamps is None else clamps.tobytes()
    if unit.main is not None and unit.main.op == "Mul":
        return Mul(
            name=name,
            inputs=inputs,
            output=result.name,
            affine=affine,
            zero_a=a.zero_point,
            zero_b=b.zero_point,
            table=table,
        )
    return Add(name=name, inputs=inputs, output=result.name, affine=affine, table=table)
