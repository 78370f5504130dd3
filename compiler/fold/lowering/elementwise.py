"""Elementwise operators: a table where the result depends on one byte, else an Add or Mul proved over all pairs."""

import contextlib
from dataclasses import replace
from math import prod

import numpy as np

from intloom.compiler.fold.arithmetic.affine_fit import (
    Points,
    SampledFunction,
    clamp_limits,
    closest_affine,
    fit_affine_with_table,
)
from intloom.compiler.fold.arithmetic.function_sum import fit_function_sum
from intloom.compiler.fold.arithmetic.irregular_ties import emit_bracket, fit_bracket
from intloom.compiler.fold.arithmetic.pair_correction import Missing, correct, marked_groups
from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes, to_int8
from intloom.compiler.fold.arithmetic.tabulation import Int8s, clamp_table, tabulate, tensor_leaves
from intloom.compiler.fold.byte_order import Ordered
from intloom.compiler.fold.graph_builder import ByteFunction, GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.common.tokens import read_tokens, select_channels
from intloom.compiler.fold.lowering.common.transposition import resized, transpose
from intloom.compiler.fold.patterns.elementwise import is_elementwise
from intloom.compiler.fold.patterns.qparams import read_qparams, stored_constant
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Add, Mul, Tensor
from intloom.compiler.ir.ops.conv import moving_conv
from intloom.compiler.refusals import Refusal, UnsupportedPattern
from intloom.hw.spec.arith import Affine, RoundingMode

_OTHER_MATCH = {RoundingMode.ORT: RoundingMode.EXACT, RoundingMode.EXACT: RoundingMode.ORT}
_SIGNS = {"Add": 1.0, "Sum": 1.0, "Sub": -1.0}


def is_elementwise_unit(builder: GraphBuilder, unit: QuantizationUnit) -> bool:
    """Whether every operator of the unit is elementwise; a unit without operators (a change of scale) is too."""
    return all(is_elementwise(builder.model, n) for n in unit.operators)


def lower_elementwise(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a unit whose operators are elementwise."""
    leaves = tensor_leaves(builder, unit)
    constants = [leaf for leaf in leaves if stored_constant(builder.model, leaf) is not None]
    if len(constants) == len(leaves):
        raise Refusal.CONSTANT("it computes a constant", "fold constants in the exporter")
    operands, order = _operands(builder, unit, leaves)
    shape = builder.model.shape(unit.output)
    for leaf, operand in operands.items():
        if leaf not in constants and _is_plane(operand, shape):
            operands[leaf] = operand = _spread_plane(builder, unit, operand, shape or ())
        if leaf not in constants and operand.shape != shape and not _is_pixel(operand, shape):
            raise Refusal.BROADCAST(
                f"{leaf!r} of shape {operand.shape} is broadcast",
                "expand it in the model, or use a scalar",
            )
    names = {o.tensor.name for o in operands.values()}
    roots = {builder.function(n).root for n in names}
    if len(roots) == 1:
        _lower_table(builder, unit, operands, order)
    elif len(names) == 2 and len(leaves) == 2:
        _lower_pair(builder, unit, operands, order)
    else:
        raise Refusal.NOT_QUANTIZED(
            f"it combines {len(names)} tensors without quantizing between", "quantize after every such operator"
        )


def _operands(
    builder: GraphBuilder, unit: QuantizationUnit, leaves: tuple[str, ...]
) -> tuple[dict[str, Operand], Ordered | None]:
    """The tensors of the leaves, and the order of their values if it is not the model's; it is the same for all.

    Leaves with different recorded orders get their last axis along channels.
    """
    dynamic = [leaf for leaf in leaves if stored_constant(builder.model, leaf) is None]
    moving = [leaf for leaf in dynamic if not _is_row(builder, unit, leaf)] or dynamic
    # Positions take time to compute, and most values are in the model's order.
    plain = all(map(builder.in_model_order, moving))
    first = None if plain else builder.ordered(moving[0])
    alike: dict[str, Operand] = {}
    operands: dict[str, Operand] = {}
    order = None
    # Of a table, the order of the bytes does not matter.
    if first is not None and all(_is_ordered_as(first, builder.ordered(leaf)) for leaf in moving[1:]):
        alike = {leaf: builder.operand_in_any_order(leaf) for leaf in moving}
    # One tensor may have along channels what is an image in another.
    if first is not None and len({operand.tensor.channels for operand in alike.values()}) == 1:
        size = alike[moving[0]].tensor.shape[2:]
        for leaf, operand in alike.items():
            operands[leaf] = replace(operand, tensor=resized(builder, operand.tensor, size, unit.origins))
        order = first
    else:
        with contextlib.suppress(UnsupportedPattern):
            operands = {leaf: builder.operand(leaf) for leaf in moving}
    if not operands:
        tokens = {leaf: read_tokens(builder, unit, leaf) for leaf in moving}
        pixels = tokens[moving[0]].pixels
        if not all(len(t.parts) == 1 and np.array_equal(t.pixels, pixels) for t in tokens.values()):
            raise Refusal.ORDER("its operands have their values in different orders", "reshape both alike")
        operands = {leaf: replace(t.operand, tensor=t.parts[0]) for leaf, t in tokens.items()}
        order = Ordered(operands[moving[0]].tensor.name, tokens[moving[0]].positions(operands[moving[0]].shape))
    missing = [leaf for leaf in leaves if leaf not in operands]
    whole = order or (builder.ordered(moving[0]) if missing else None)
    if whole is not None:
        for leaf in missing:
            emit = _spread_row if leaf in dynamic else _constant_operand
            operands[leaf] = emit(builder, unit, leaf, operands[moving[0]], whole)
    return {leaf: operands[leaf] for leaf in leaves}, order


def _is_ordered_as(first: Ordered, other: Ordered | None) -> bool:
    return other is not None and np.array_equal(other.positions, first.positions)


def _constant_operand(
    builder: GraphBuilder, unit: QuantizationUnit, leaf: str, like: Operand, order: Ordered
) -> Operand:
    """Emit a constant in the shape and order of another operand, or one pixel of it if all pixels are equal."""
    node = builder.model.producers[leaf]
    array, params = builder.model.constants[node.inputs[0]].array, read_qparams(builder.model, node)
    if array.size > 1 and np.broadcast_shapes(array.shape, order.shape) != order.shape:
        raise Refusal.BROADCAST(f"it broadcasts an operand to the shape of {leaf!r}", "expand it in the model")
    name = f"{unit.output}/{leaf}"
    tensor = builder.tensor(name, like.tensor.shape, params)
    image = np.zeros(prod(tensor.shape), np.int8)
    image[order.positions] = np.broadcast_to(to_int8(array), order.shape)
    image = image.reshape(like.tensor.shape[1:])
    if (image == image[:, :1, :1]).all():
        image = image[:, :1, :1]
    return Operand(builder.constant(name, image, unit.origins, tensor), params, order.shape)


def _is_row(builder: GraphBuilder, unit: QuantizationUnit, leaf: str) -> bool:
    """Whether a leaf is one row that is broadcast over rows, as the mask of an attention."""
    given, shape = builder.model.shape(leaf) or (), builder.model.shape(unit.output) or ()
    return len(given) == len(shape) > 2 and given != shape and given == (*(1,) * (len(shape) - 1), shape[-1])


def _spread_row(builder: GraphBuilder, unit: QuantizationUnit, leaf: str, like: Operand, order: Ordered) -> Operand:
    """One pixel with the values of a row for each channel of another operand."""
    row = read_tokens(builder, unit, leaf)
    values = np.zeros(prod(like.tensor.shape), np.int64)
    values[order.positions] = np.broadcast_to(np.arange(order.shape[-1]), order.shape)
    channels = values.reshape(like.tensor.channels, -1)
    pixel = select_channels(builder, row.parts[0].name, channels[:, 0])
    if pixel is None or (channels != channels[:, :1]).any():
        raise Refusal.BROADCAST(f"{leaf!r} is broadcast over rows that are not pixels", "expand it in the model")
    return Operand(pixel, row.operand.params, order.shape)


def _is_plane(operand: Operand, shape: tuple[int, ...] | None) -> bool:
    """Whether the operand is one channel that is broadcast over the channels of an image."""
    if shape is None or not len(shape) == len(operand.shape) > 2:
        return False
    # Last, since `has_model_shape` refuses a batch.
    return operand.shape[1] == 1 < shape[1] and operand.shape[2:] == shape[2:] and operand.has_model_shape


def _spread_plane(builder: GraphBuilder, unit: QuantizationUnit, plane: Operand, shape: tuple[int, ...]) -> Operand:
    """An image with copies of one channel: by the array, since the vector unit repeats pixels only."""
    name = f"{plane.tensor.name}/{shape[1]}times"
    image = replace(plane.tensor, name=name, shape=(1, shape[1], *plane.tensor.shape[2:]))
    if name not in builder.tensors:
        node = moving_conv(name, plane.tensor, np.ones((shape[1], 1, 1, 1), np.int8))
        builder.emit(replace(node, origin=unit.origins), image)
    return Operand(image, plane.params, shape)


def _is_pixel(operand: Operand, shape: tuple[int, ...] | None) -> bool:
    """Whether the operand is one pixel that is broadcast over the image."""
    wide = shape is not None and len(shape) == len(operand.shape) > 2 and shape[:2] == operand.shape[:2]
    return wide and operand.has_model_shape and set(operand.shape[2:]) == {1}


def _result(
    builder: GraphBuilder, unit: QuantizationUnit, operands: dict[str, Operand], order: Ordered | None
) -> Tensor:
    """Describe the result in the shape of its operands, which may be views."""
    tensors = [o.tensor for o in operands.values()]
    # A pixel is broadcast over the other operand.
    shape = max((t.shape for t in tensors), key=prod)
    # Only a tensor in the model's order has the name of the model's value.
    name = unit.output if order is None else f"{unit.output}/any_order"
    return builder.tensor(name, shape, builder.params(unit))


def _bind(builder: GraphBuilder, unit: QuantizationUnit, tensor: str, order: Ordered | None) -> None:
    """Record that `tensor` holds the unit's result, in this order or the model's."""
    if order is None:
        builder.bind(unit.output, tensor)
    else:
        builder.orders[unit.output] = Ordered(tensor, order.positions)


def _lower_table(
    builder: GraphBuilder, unit: QuantizationUnit, operands: dict[str, Operand], order: Ordered | None
) -> None:
    names = {o.tensor.name for o in operands.values()}
    functions = {leaf: builder.function(o.tensor.name) for leaf, o in operands.items()}
    root = next(iter(functions.values())).root
    result = _result(builder, unit, operands, order)
    if len(names) == 1:
        # The node's table maps the operand; the recorded function is composed, so that it maps the root.
        source = next(iter(names))
        table = tabulate(builder, unit, dict.fromkeys(operands, all_bytes()), builder.options.match)
        composed = table[builder.function(source).table.view(np.uint8)]
    else:
        source = root
        table = composed = tabulate(
            builder, unit, {leaf: f.table for leaf, f in functions.items()}, builder.options.match
        )
    before = builder.tensors[source]
    if np.array_equal(table, all_bytes()) and (before.scale, before.zero_point) == (result.scale, result.zero_point):
        _bind(builder, unit, source, order)
        builder.assign(unit, Target.PLACEMENT, "identity")
        return
    builder.functions[result.name] = ByteFunction(root, composed)
    node = builder.table_node(unit_name(unit), source, table, result.name)
    builder.emit(replace(node, origin=unit.origins), result)
    _bind(builder, unit, result.name, order)
    builder.assign(unit, Target.TABLE)


def _as_channels(builder: GraphBuilder, unit: QuantizationUnit, x: Operand, other: Operand) -> Operand:
    """An operand with its only channel turned to one pixel, if the other one is a pixel of as many values."""
    like, tensor = other.tensor, x.tensor
    pixel = (1, tensor.height * tensor.width, 1, 1)
    if x.shape != other.shape or tensor.channels > 1 or tensor.shape == like.shape or like.shape != pixel:
        return x
    name = f"{tensor.name}/pixel"
    if name not in builder.tensors:
        transpose(builder, tensor, name, unit.origins, (1, 1))
    return replace(x, tensor=builder.tensors[name])


def _lower_pair(
    builder: GraphBuilder, unit: QuantizationUnit, operands: dict[str, Operand], order: Ordered | None
) -> None:
    main = unit.main
    (leaf_a, a), (leaf_b, b) = operands.items()
    a, b = _as_channels(builder, unit, a, b), _as_channels(builder, unit, b, a)
    operands = {leaf_a: a, leaf_b: b}
    shapes = a.tensor.shape, b.tensor.shape
    pixel = (1, a.tensor.channels, 1, 1)
    if shapes[0] != shapes[1] and (pixel not in shapes or a.tensor.channels != b.tensor.channels):
        raise Refusal.ORDER("its operands are views of different shapes", "reshape both to the same shape")
    if main is None or len(unit.operators) != 1 + len(unit.clamps) or main.op not in (*_SIGNS, "Mul"):
        if _lower_function_sum(builder, unit, operands, order):
            return
        raise Refusal.NOT_QUANTIZED(
            "it combines two tensors with several operators without quantizing between, in a way that no two sums of "
            "bytes reproduce",
            "quantize after every operator",
        )
    # The leaves are in the order of the search for them, which may not be that of the operator's inputs.
    if main.inputs[0] == leaf_b:
        leaf_a, leaf_b, a, b = leaf_b, leaf_a, b, a
    result = _result(builder, unit, operands, order)
    _bind(builder, unit, result.name, order)
    one, two = (m.ravel() for m in np.meshgrid(all_bytes(), all_bytes(), indexing="ij"))
    pairs = {leaf_a: one, leaf_b: two}
    truth = tabulate(builder, unit, pairs, builder.options.match).astype(np.int64)
    # Evaluated with the other optimization level too, only for a warning.
    if not np.array_equal(truth, tabulate(builder, unit, pairs, _OTHER_MATCH[builder.options.match])):
        builder.mode_dependent.append(main.name)
    clamps = clamp_table(builder, unit)
    x1, x2, ratios = _linear_form(main.op, (a, b), result, one.astype(np.int64), two.astype(np.int64))
    goal = SampledFunction(x1, x2, truth, clamps)
    fitted = fit_affine_with_table(goal, ratios)
    if fitted is not None:
        builder.emit(replace(_pair_node(unit, (a, b), result, *fitted), origin=unit.origins), result)
        builder.assign(unit, Target.VECTOR, "proved over 65,536 pairs")
        return
    builder.irregular.append(unit.quantize.name)
    bracket = fit_bracket(goal, ratios[0]) if main.op == "Mul" else None
    if bracket is not None:
        rough = _pair_node(unit, (a, b), result, bracket.low, None)
        assert isinstance(rough, Mul)
        emit_bracket(builder, replace(rough, origin=unit.origins), result, bracket, clamps)
        builder.assign(unit, Target.VECTOR, "proved over 65,536 pairs, rounding ties by a table")
        return
    affine, missing = closest_affine(goal, ratios)
    wrong = Missing(missing.reshape(256, 256), (a.tensor.name, b.tensor.name))
    correct(builder, unit, _pair_node(unit, (a, b), result, affine, clamps), result, wrong)


def _lower_function_sum(
    builder: GraphBuilder, unit: QuantizationUnit, operands: dict[str, Operand], order: Ordered | None
) -> bool:
    """Lower the sum of a tensor and a function of another one, as a residual after SiLU; False if it is none."""
    main = unit.main
    plain = next((v for v in operands if main is not None and v in main.inputs), None)
    if main is None or plain is None or main.op not in _SIGNS:
        return False
    (other,) = (leaf for leaf in operands if leaf != plain)
    r, x = operands[plain].tensor, operands[other].tensor
    result, clamps = _result(builder, unit, operands, order), clamp_table(builder, unit)
    one, two = (m.ravel() for m in np.meshgrid(all_bytes(), all_bytes(), indexing="ij"))
    truth = tabulate(builder, unit, {other: one, plain: two}, builder.options.match).astype(np.int64)
    sign = _SIGNS[main.op] if main.inputs[1] == plain else 1.0
    made = fit_function_sum(truth.reshape(256, 256), sign * r.scale / result.scale, clamp_limits(clamps))
    if made is None or (made.missing.any() and marked_groups(made.missing) is None):
        return False
    name = unit_name(unit)
    for part, table in (("steps", made.steps), ("codes", made.codes)):
        node = builder.table_node(f"{name}/{part}", x.name, table, f"{result.name}/{part}")
        builder.emit(replace(node, origin=unit.origins), replace(x, name=node.output))
    inner = Add(
        name=f"{name}/inner", inputs=(f"{result.name}/codes", r.name), output=f"{result.name}/inner", affine=made.inner
    )
    builder.emit(replace(inner, origin=unit.origins), replace(result, name=inner.output))
    limited = None if clamps is None else clamps.tobytes()
    last = Add(
        name=name, inputs=(f"{result.name}/steps", inner.output), output=result.name, affine=made.outer, table=limited
    )
    _bind(builder, unit, result.name, order)
    if made.missing.any():
        correct(builder, unit, last, result, Missing(made.missing, (x.name, r.name)))
    else:
        builder.emit(replace(last, origin=unit.origins), result)
        builder.assign(unit, Target.VECTOR, "two sums, proved over 65,536 pairs")
    return True


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
