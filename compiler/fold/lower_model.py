"""Lowering of a model: builds the integer graph from its quantization units and finds the boundary to the host."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from intloom.common.errors import UnsupportedError
from intloom.compiler.custom import find
from intloom.compiler.fold.byte_order import Positions, is_permutation
from intloom.compiler.fold.graph_builder import FoldOptions, GraphBuilder, as_image
from intloom.compiler.fold.lowering.channelwise import is_channelwise_unit, lower_channelwise
from intloom.compiler.fold.lowering.common.reordering import is_reordering, reorder
from intloom.compiler.fold.lowering.common.tokens import pick_values
from intloom.compiler.fold.lowering.common.transposition import restore_order, turn_to_image
from intloom.compiler.fold.lowering.custom import lower_custom
from intloom.compiler.fold.lowering.elementwise import is_elementwise_unit, lower_elementwise
from intloom.compiler.fold.lowering.normalization import is_normalization_unit, lower_normalization
from intloom.compiler.fold.lowering.registry import LOWERINGS, OperatorLowering
from intloom.compiler.fold.patterns.elementwise import ELEMENTWISE
from intloom.compiler.fold.patterns.normalization import NORMALIZATIONS, unsupported_normalization
from intloom.compiler.fold.patterns.qparams import is_dequantize, is_quantize, read_qparams, stored_value
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.unsupported import RECURRENT, recurrent
from intloom.compiler.fold.target import Finding, Target
from intloom.compiler.importer import STANDARD, Model, OnnxNode
from intloom.compiler.ir import IntGraph
from intloom.compiler.refusals import Refusal, UnsupportedPattern

_FAMILIES: tuple[tuple[Callable[[GraphBuilder, QuantizationUnit], bool], OperatorLowering], ...] = (
    (is_normalization_unit, lower_normalization),
    (is_channelwise_unit, lower_channelwise),
    (is_elementwise_unit, lower_elementwise),
)
"""Families of operators that one lowering serves, tried in this order before the registered operators."""
_FIRST_LAYER_NORM = 17
"""Opset from which LayerNormalization is an operator."""
_ADVICE = "run it on the host, or replace it with supported operators"


def lower_units(model: Model, options: FoldOptions) -> GraphBuilder:
    """Lower every supported unit; record reason and remedy for the others."""
    builder = GraphBuilder(model, options)
    for source in _input_values(builder):
        _add_input(builder, source)
    for node in model.nodes:
        unit = builder.units.get(node.name)
        if unit is not None and unit.output not in builder.views and unit.output not in builder.orders:
            builder.producing_nodes[unit.output] = tuple(n.name for n in unit.nodes)
            if not _lower_in_some_order(builder, unit):
                _restore_for_host(builder, unit.leaves)
                _add_host_computed_input(builder, unit)
        elif node.domain and find(node.domain, node.op) is not None:
            _attempt(builder, (node,), partial(lower_custom, builder, node))
    leave_for_host(builder)
    return builder


def leave_for_host(builder: GraphBuilder) -> None:
    """Give every value that the host reads the model's order."""
    outside = [n for n in builder.model.nodes if not is_dequantize(n) and not builder.on_accelerator(n.name)]
    _restore_for_host(builder, [v for n in outside for v in n.reads])
    _restore_for_host(builder, builder.model.outputs)
    builder.views |= builder.left_in_order


def _lower_in_some_order(builder: GraphBuilder, unit: QuantizationUnit) -> bool:
    """Lower a unit with operands as they are; if that fails, with those in another order than the model's moved."""
    if _attempt(builder, unit.nodes, partial(_lower, builder, unit)):
        return True
    stored = dict.fromkeys(stored_value(builder.model, leaf) for leaf in unit.leaves)
    reordered = [v for v in stored if v in builder.orders and v not in builder.views]
    views = [v for v in stored if v in builder.views and _is_in_other_rows(builder, *builder.views[v])]
    if (reordered or views) and _lower_images(builder, unit, reordered + views):
        return True
    return bool(reordered) and _lower_after_host_movement(builder, unit, reordered)


def _is_in_other_rows(builder: GraphBuilder, tensor: str, shape: tuple[int, ...]) -> bool:
    """Whether a tensor has a value's channels, with their pixels in another number of rows."""
    given = builder.tensors[tensor].shape
    return 2 < len(shape) <= len(given) and shape[:2] == given[:2] and as_image(shape) != given


def _lower_images(builder: GraphBuilder, unit: QuantizationUnit, reordered: Sequence[str]) -> bool:
    """Lower a unit that needs images, with operands transposed by products."""

    def lower() -> None:
        for stored in reordered:
            turn_to_image(builder, stored)
        _lower(builder, unit)

    return _attempt_again(builder, unit, lower)


def _lower_after_host_movement(builder: GraphBuilder, unit: QuantizationUnit, reordered: Sequence[str]) -> bool:
    """Lower a unit that needs its operands in the model's order, with the movement before it on the host."""
    sources = [(v, builder.units.get(builder.model.producers[v].name)) for v in reordered]
    moved = [(v, s) for v, s in sources if s is not None and s.main and is_reordering(s.main.op)]

    def lower() -> None:
        for stored, source in moved:
            # The host may have needed this value in the model's order for an earlier one.
            if stored not in builder.views:
                _assign_host(builder, source)
                del builder.orders[stored]
                # The host makes it now, also for its own readers before this one.
                builder.left_in_order.pop(stored, None)
                _add_host_computed_input(builder, source)
        _lower(builder, unit)

    return bool(moved) and _attempt_again(builder, unit, lower)


def _attempt_again(builder: GraphBuilder, unit: QuantizationUnit, action: Callable[[], None]) -> bool:
    """Lower a unit in another way; on failure keep the findings of the first."""
    kept = list(builder.inputs), list(builder.host_computed), dict(builder.findings)
    for node in unit.nodes:
        builder.findings.pop(node.name, None)
    if _attempt(builder, unit.nodes, action):
        return True
    builder.inputs, builder.host_computed, builder.findings = kept
    return False


def _assign_host(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    for node in unit.nodes:
        reason = "its result is needed in another order"
        builder.findings[node.name] = Finding(Target.HOST, reason, _ADVICE, Refusal.ORDER)
    _restore_for_host(builder, unit.leaves)


def _restore_for_host(builder: GraphBuilder, values: Iterable[str]) -> None:
    """Give the values that the host reads the model's order, or leave the change of order to the host."""
    for value in dict.fromkeys(values):
        stored = stored_value(builder.model, value)
        if stored not in builder.orders or stored in builder.views:
            continue
        unit = builder.units[builder.model.producers[stored].name]
        if _attempt(builder, (), partial(restore_order, builder, stored)):
            continue
        # The host would need the whole tensor otherwise.
        if _attempt(builder, (), partial(pick_values, builder, unit)) and _attempt(
            builder, (), partial(restore_order, builder, stored)
        ):
            continue
        # A Concat that only the host reads would cost the accelerator transposed copies of its operands.
        if (unit.main is not None and unit.main.op == "Concat") or not builder.leave_in_order(stored):
            _assign_host(builder, unit)


def _attempt(builder: GraphBuilder, nodes: Sequence[OnnxNode], action: Callable[[], None]) -> bool:
    """Lower some nodes and return True; on failure restore the graph, record reason and remedy, and return False."""
    error = builder.refusal_of(action)
    if error is not None:
        for made in nodes:
            builder.findings.setdefault(made.name, _on_host(error))
    return error is None


def _on_host(error: UnsupportedError) -> Finding:
    if isinstance(error, UnsupportedPattern):
        return Finding(Target.HOST, str(error), error.remedy, error.refusal)
    return Finding(Target.HOST, str(error), _ADVICE, Refusal.OPERATOR)


def _lower(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    if _lower_family(builder, unit):
        return
    main = unit.main
    if main is not None and main.op in NORMALIZATIONS:
        raise unsupported_normalization(main.op)
    if main is not None and main.op in RECURRENT:
        raise recurrent(main.op)
    rule = LOWERINGS.get(main.op) if main is not None and main.domain == STANDARD else None
    if main is not None and rule is None and reorder(builder, unit):
        return
    inner = _unquantized(unit)
    if main is None or (rule is None and not (inner and main.op in ELEMENTWISE)):
        raise Refusal.OPERATOR(_unsupported_reason(main.op if main else "this"), _ADVICE)
    if rule is None or inner:
        raise Refusal.NOT_QUANTIZED(
            f"the value between {inner[-1].name!r} and {main.name!r} is not quantized",
            _remedy_between(unit, inner[-1]),
        )
    error = builder.refusal_of(partial(rule, builder, unit))
    if error is not None and not reorder(builder, unit):
        raise error


def _lower_family(builder: GraphBuilder, unit: QuantizationUnit) -> bool:
    """Lower a unit as the first family that supports it; False if it belongs to none.

    Constants for each channel of a value in another order are also a second operand.
    """
    errors = []
    for lower_family in [lower for belongs, lower in _FAMILIES if belongs(builder, unit)]:
        error = builder.refusal_of(partial(lower_family, builder, unit))
        if error is None:
            return True
        errors.append(error)
    if errors:
        raise errors[0]
    return False


def _unquantized(unit: QuantizationUnit) -> list[OnnxNode]:
    """Operators before the main one, in the same unit; elementwise operators need no pair between them."""
    main = unit.main
    inner = [n for n in unit.operators if n is not main and n not in unit.clamps]
    return [n for n in inner if main is None or main.op not in ELEMENTWISE or n.op not in ELEMENTWISE]


def _remedy_between(unit: QuantizationUnit, inner: OnnxNode) -> str:
    """What to do about an unquantized value between operators of a unit: parts of a normalization are better one."""
    ops = {n.op for n in unit.operators}
    if unit.model.opset < _FIRST_LAYER_NORM and "ReduceMean" in ops and ops & {"Pow", "Sqrt"}:
        return f"export with opset {_FIRST_LAYER_NORM}, where a layer normalization is one operator, then quantize"
    return f"quantize the output of {inner.name!r}"


def _unsupported_reason(op: str) -> str:
    """Reason why an operator has no lowering."""
    if op in ELEMENTWISE:
        return f"{op} has a constant that is not a scalar, or operands of different shapes"
    if op == "ReduceL2":
        # As of ConvNeXtV2's response normalization. A byte for the sum would leave the small roots far off.
        return f"{op} is the root of a sum of squares, which the accelerator would store in a byte"
    return f"{op} has no integer lowering"


def _input_values(builder: GraphBuilder) -> tuple[str, ...]:
    """Inputs of the graph: integer inputs of the model, and the first quantized values after other inputs.

    The host also moves the bytes of an integer input that the model transposes or reshapes before it uses it.
    """
    model = builder.model
    integer = {v for v in model.inputs if model.dtype(v) in ("int8", "uint8")}
    moved = {v for v in integer if _is_only_moved(model, v)}
    deep = (set(model.inputs) - integer) | moved
    inputs = [v for v in model.inputs if v not in deep]
    fixed = set(model.constants)
    for node in model.nodes:
        dynamic = [v for v in node.reads if v and v not in fixed]
        unit = builder.units.get(node.name)
        if not dynamic:
            # Dequantized constants, such as the table of an embedding.
            fixed.update(node.outputs)
        if not dynamic or any(v not in deep for v in dynamic):
            continue
        if unit is not None:
            inputs.append(unit.output)
        elif set(dynamic) <= moved and not _is_only_moved(model, node.outputs[0]):
            inputs += node.outputs
        else:
            deep.update(node.outputs)
            moved.update(node.outputs if set(dynamic) <= moved else ())
    return tuple(inputs)


def _is_only_moved(model: Model, value: str) -> bool:
    """Whether stored bytes are transposed or reshaped by every node that reads them."""
    return bool(model.users(value)) and all(n.op in ("Reshape", "Transpose") for n in model.users(value))


def _add_input(builder: GraphBuilder, stored: str) -> None:
    """Make a quantized value an input of the graph."""
    maker = builder.model.producers.get(stored)
    readers = (n for n in builder.model.users(stored) if is_dequantize(n))
    reader = maker if maker is not None and is_quantize(maker) else next(readers, None)
    try:
        if reader is not None:
            _read_from_host(builder, stored, reader)
    except UnsupportedError as error:
        if maker is not None:
            builder.findings[maker.name] = _on_host(error)


def _add_host_computed_input(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Make a quantized value that the host computes an input of the graph for the units after it."""
    with contextlib.suppress(UnsupportedError):  # the units after it then run on the host too
        if _read_from_host(builder, unit.output, unit.quantize):
            builder.host_computed.append(unit.output)


def _read_from_host(builder: GraphBuilder, stored: str, node: OnnxNode) -> bool:
    """Add an input with the parameters of a node; False if its shape is unknown."""
    shape = builder.model.shape(stored)
    if shape is not None:
        # Rows of one matrix, and the steps of a recurrent cell, are tokens of one sequence: the same bytes.
        rows = len(shape) > 1 and shape[0] != 1 and shape[1:-1] in ((), (1,))
        image = as_image((1, *shape) if rows else shape)
        builder.tensors[stored] = builder.tensor(stored, image, read_qparams(builder.model, node))
        builder.inputs.append(stored)
        builder.views[stored] = (stored, shape)
    return shape is not None


def graph_of(builder: GraphBuilder, file: Model) -> tuple[IntGraph, dict[str, str]]:
    """The integer graph, and for each quantized value of the model that is an output of it, the tensor that holds it.

    A view that a pass created appears under the name of its tensor, which exists in the imported model `file`.
    """
    outside = [n for n in builder.model.nodes if not builder.on_accelerator(n.name)]
    read = {v for n in outside if not is_dequantize(n) for v in n.reads} | set(builder.model.outputs)
    leaving: dict[str, str] = {}
    for stored, (tensor, _) in builder.views.items():
        floats = [out for n in builder.model.users(stored) if is_dequantize(n) for out in n.outputs]
        # A tensor is an output under one name; the host computes further views of it, and views of inputs.
        if tensor in builder.inputs or tensor in leaving.values():
            continue
        if stored in read or any(f in read for f in floats):
            own = stored in file.producers or tensor not in builder.views
            leaving[stored if own else tensor] = tensor
    outputs = tuple(dict.fromkeys(leaving.values()))
    shifted = builder.model.shifted
    tensors = {name: replace(t, unsigned=t.unsigned and name not in shifted) for name, t in builder.tensors.items()}
    graph = IntGraph(builder.model.name, tensors, tuple(builder.nodes.values()), tuple(builder.inputs), outputs)
    return graph, leaving


def orders_of(builder: GraphBuilder) -> dict[str, tuple[str, Positions]]:
    """For tensors whose values lie in another order than the model's: the model's value, and their positions."""
    orders: dict[str, tuple[str, Positions]] = {}
    for stored, order in builder.orders.items():
        size = prod(builder.tensors[order.tensor].shape)
        if order.tensor not in orders and order.positions.size == size and is_permutation(order.positions):
            orders[order.tensor] = (stored, order.positions)
    return orders
