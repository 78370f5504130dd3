"""Elementwise cones: a table where all operands are functions of one byte, else an Add or Mul proved over all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from intloom.compiler.fold.bytewise import Int8s, clamp_table, is_elementwise, tabulate, tensor_leaves
from intloom.compiler.fold.correction import correct
from intloom.compiler.fold.either import emit_frame, fit_frame
from intloom.compiler.fold.law import Points, Wanted, closest, fit_with_table
from intloom.compiler.fold.lowering import ByteFunction, Lowering, Operand, Refusal, Verdict, lowers, unit_name
from intloom.compiler.fold.oracle import every_byte
from intloom.compiler.fold.spatial import Mover
from intloom.compiler.fold.units import Unit
from intloom.compiler.ir import Add, Mul, Tensor
from intloom.hw.spec.arith import Affine, Match

_OTHER_MATCH = {Match.ORT: Match.EXACT, Match.EXACT: Match.ORT}
_SIGNS = {"Add": 1.0, "Sum": 1.0, "Sub": -1.0}


def is_bytewise(low: Lowering, unit: Unit) -> bool:
    """Every operator of the cone works place by place; an empty cone (a change of scale) does so too."""
    return all(is_elementwise(low.model, n) for n in unit.cone)


@lowers("elementwise")
def lower_elementwise(low: Lowering, unit: Unit) -> None:
    """Lower a unit whose cone works place by place."""
    leaves = tensor_leaves(low, unit)
    if not leaves:
        raise Refusal("it computes a constant", "fold constants in the exporter")
    operands = {leaf: low.operand(leaf) for leaf in leaves}
    for leaf, operand in operands.items():
        if operand.shape != low.model.shape(unit.output):
            if _is_pixel(operand, low.model.shape(unit.output)):
                operands[leaf] = _repeated(low, unit, operand)
                continue
            raise Refusal(
                f"{leaf!r} of shape {operand.shape} is broadcast",
                "expand it in the model, or use one value for all places",
            )
    names = {o.tensor.name for o in operands.values()}
    roots = {low.function(n).root for n in names}
    if len(roots) == 1:
        _lower_table(low, unit, operands)
    elif len(names) == 2 and len(leaves) == 2:
        _lower_pair(low, unit, operands)
    else:
        raise Refusal(
            f"it joins {len(names)} tensors without rounding between", "quantise after every operator of two tensors"
        )


def _is_pixel(operand: Operand, shape: tuple[int, ...] | None) -> bool:
    """One value for each channel, wanted at every place."""
    wide = shape is not None and len(shape) == len(operand.shape) > 2 and shape[:2] == operand.shape[:2]
    return wide and operand.natural and set(operand.shape[2:]) == {1}


def _repeated(low: Lowering, unit: Unit, operand: Operand) -> Operand:
    """The operand at every place of the unit's result."""
    shape, result = low.model.shape(unit.output) or (), low.result(unit)
    mover = Mover(low, unit.origins)
    tensor = mover.repeat(operand.tensor, (result.height, result.width), f"{operand.tensor.name}/over/{result.name}")
    return Operand(tensor, operand.params, shape)


def _result(low: Lowering, unit: Unit, operands: dict[str, Operand]) -> Tensor:
    """The result has the form of its operands, which may be a view."""
    first = next(iter(operands.values()))
    plain = low.result(unit)
    return Tensor(plain.name, first.tensor.shape, plain.scale, plain.zero_point, plain.unsigned)


def _lower_table(low: Lowering, unit: Unit, operands: dict[str, Operand]) -> None:
    names = {o.tensor.name for o in operands.values()}
    functions = {leaf: low.function(o.tensor.name) for leaf, o in operands.items()}
    root = next(iter(functions.values())).root
    result = _result(low, unit, operands)
    if len(names) == 1:
        # One operand: tabulate over it directly, and compose for those who ask for the root.
        source = next(iter(names))
        table = tabulate(low, unit, dict.fromkeys(operands, every_byte()), low.match)
        composed = table[low.function(source).table.view(np.uint8)]
    else:
        source = root
        table = composed = tabulate(low, unit, {leaf: f.table for leaf, f in functions.items()}, low.match)
    before = low.tensors[source]
    if np.array_equal(table, every_byte()) and (before.scale, before.zero_point) == (result.scale, result.zero_point):
        low.bind(unit.output, source)
        low.judge(unit, Verdict.PLACEMENT, "changes nothing")
        return
    low.functions[result.name] = ByteFunction(root, composed)
    node = low.table_node(unit_name(unit), source, table, result.name)
    low.finish(unit, node, result, Verdict.TABLE)


def _lower_pair(low: Lowering, unit: Unit, operands: dict[str, Operand]) -> None:
    main = unit.main
    (leaf_a, a), (leaf_b, b) = operands.items()
    if main is None or len(unit.cone) != 1 + len(unit.chain) or main.op not in (*_SIGNS, "Mul"):
        raise Refusal(
            "it joins two tensors by more than one operator without rounding between", "quantise after every operator"
        )
    if main.inputs[0] == leaf_b:
        leaf_a, leaf_b, a, b = leaf_b, leaf_a, b, a
    if a.tensor.shape != b.tensor.shape:
        raise Refusal("its operands are views of different forms", "reshape both alike")
    result = _result(low, unit, operands)
    one, two = (m.ravel() for m in np.meshgrid(every_byte(), every_byte(), indexing="ij"))
    pairs = {leaf_a: one, leaf_b: two}
    truth = tabulate(low, unit, pairs, low.match).astype(np.int64)
    if not np.array_equal(truth, tabulate(low, unit, pairs, _OTHER_MATCH[low.match])):
        low.mode_dependent.append(main.name)
    clamps = clamp_table(low, unit)
    x1, x2, ratios = _linear_form(main.op, (a, b), result, one.astype(np.int64), two.astype(np.int64))
    found = fit_with_table(x1, x2, truth, ratios, clamps)
    if found is not None:
        low.finish(unit, _pair_node(unit, (a, b), result, *found), result, Verdict.VECTOR, "proved over 65,536 pairs")
        return
    frame = fit_frame(Wanted(x1, x2, truth, clamps), ratios[0]) if main.op == "Mul" else None
    if frame is not None:
        rough = _pair_node(unit, (a, b), result, frame.low, None)
        assert isinstance(rough, Mul)
        emit_frame(low, replace(rough, origin=unit.origins), result, frame, clamps)
        low.bind(unit.output, result.name)
        low.judge(unit, Verdict.VECTOR, "proved over 65,536 pairs, ties by a table")
        return
    law, missing = closest(x1, x2, truth, ratios, clamps)
    correct(low, unit, _pair_node(unit, (a, b), result, law, clamps), result, missing.reshape(256, 256))


def _linear_form(
    op: str, operands: tuple[Operand, Operand], result: Tensor, one: Points, two: Points
) -> tuple[Points, Points, tuple[float, float]]:
    """What the law adds up, and the real factors of it."""
    a, b = (o.tensor for o in operands)
    if op == "Mul":
        product = (one - a.zero_point) * (two - b.zero_point)
        return product, np.zeros_like(product), (a.scale * b.scale / result.scale, 0.0)
    return one, two, (a.scale / result.scale, _SIGNS[op] * b.scale / result.scale)


def _pair_node(
    unit: Unit, operands: tuple[Operand, Operand], result: Tensor, law: Affine, clamps: Int8s | None
) -> Add | Mul:
    a, b = (o.tensor for o in operands)
    name, inputs, table = unit_name(unit), (a.name, b.name), None if clamps is None else clamps.tobytes()
    if unit.main is not None and unit.main.op == "Mul":
        return Mul(
            name=name, inputs=inputs, output=result.name, law=law, zero_a=a.zero_point, zero_b=b.zero_point, table=table
        )
    return Add(name=name, inputs=inputs, output=result.name, law=law, table=table)
