"""Movement operators as a change of the recorded order of values: no byte moves."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from intloom.compiler.fold.arithmetic.tabulation import requant_table
from intloom.compiler.fold.byte_order import Ordered, Positions
from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.tokens import matrices_apart
from intloom.compiler.fold.lowering.slices import slice_bounds
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target


def reorder(builder: GraphBuilder, unit: QuantizationUnit) -> bool:
    """Record the order of a movement operator's result, after a table if it changes the scale; False if it is none."""
    main = unit.operator
    rule = _RULES.get(main.op)
    if rule is None or main.domain:
        return False
    source = builder.ordered(main.input(0))
    shape = builder.model.shape(unit.output)
    if source is None or shape is None:
        return False
    # The host transposes what it computes itself.
    if source.tensor in builder.host_computed and main.op == "Transpose":
        return False
    positions = rule(builder, unit, source.positions)
    if positions is None or positions.shape != shape:
        return False
    tensor, table = source.tensor, requant_table(builder, unit)
    if table is not None:
        tensor = f"{unit.output}/any_order"
        node = builder.table_node(unit_name(unit), source.tensor, table, tensor)
        result = builder.tensor(tensor, builder.tensors[source.tensor].shape, builder.params(unit))
        builder.emit(replace(node, origin=unit.origins), result)
    order = Ordered(tensor, positions)
    apart = matrices_apart(builder, unit, order)
    builder.orders[unit.output] = apart or order
    if apart is None:
        builder.assign(unit, Target.PLACEMENT if table is None else Target.TABLE, "the same bytes in another order")
    else:
        builder.assign(unit, Target.ARRAY, "a convolution that selects pixels, for each matrix")
    return True


def _reshape(builder: GraphBuilder, unit: QuantizationUnit, positions: Positions) -> Positions | None:
    shape = builder.model.shape(unit.output) or ()
    return positions.reshape(shape) if np.prod(shape) == positions.size else None


def _transpose(builder: GraphBuilder, unit: QuantizationUnit, positions: Positions) -> Positions | None:
    return positions.transpose(unit.operator.integers("perm", tuple(reversed(range(positions.ndim)))))


def _split(builder: GraphBuilder, unit: QuantizationUnit, positions: Positions) -> Positions | None:
    main = unit.operator
    axis = main.integer("axis", 0) % positions.ndim
    shapes = [builder.model.shape(name) for name in main.outputs]
    sizes = [0 if s is None else s[axis] for s in shapes]
    index = main.outputs.index(unit.unclamped)
    start = sum(sizes[:index])
    return positions.take(range(start, start + sizes[index]), axis=axis) if all(sizes) else None


def _gather(builder: GraphBuilder, unit: QuantizationUnit, positions: Positions) -> Positions | None:
    main = unit.operator
    index = builder.model.constant(main.input(1))
    if index is None:
        return None
    axis = main.integer("axis", 0) % positions.ndim
    if index.size and not (-positions.shape[axis] <= index.min() and index.max() < positions.shape[axis]):
        return None
    return np.take(positions, index.astype(np.int64), axis=axis)


def _slice(builder: GraphBuilder, unit: QuantizationUnit, positions: Positions) -> Positions | None:
    cuts = [slice(None)] * positions.ndim
    for axis, first, last, step in slice_bounds(builder, unit.operator, positions.ndim):
        cuts[axis] = slice(first, last, step)
    return positions[tuple(cuts)]


def is_reordering(op: str) -> bool:
    """Whether a rule exists for the operator."""
    return op in _RULES


_RULES: dict[str, Callable[[GraphBuilder, QuantizationUnit, Positions], Positions | None]] = {
    "Reshape": _reshape,
    "Flatten": _reshape,
    "Squeeze": _reshape,
    "Unsqueeze": _reshape,
    "Transpose": _transpose,
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
}
