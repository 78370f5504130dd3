"""Builds the integer graph: lowers every unit that can be lowered and finds the border to the host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from intloom.common.errors import UnsupportedError
from intloom.compiler.custom import find
from intloom.compiler.fold.graph_builder import GraphBuilder, as_image
from intloom.compiler.fold.lowering.channelwise import is_channelwise_unit, lower_channelwise
from intloom.compiler.fold.lowering.custom import lower_custom
from intloom.compiler.fold.lowering.elementwise import is_elementwise_unit, lower_elementwise
from intloom.compiler.fold.lowering.registry import OperatorLowering, registered_lowerings
from intloom.compiler.fold.patterns.elementwise import ELEMENTWISE
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, read_qparams
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit, find_quantization_units
from intloom.compiler.fold.patterns.unsupported import UnsupportedPattern
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import STANDARD, Model, OnnxNode
from intloom.compiler.ir import IntGraph
from intloom.hw.spec.arith import RoundingMode

_DIVIDING = frozenset({"LayerNormalization", "InstanceNormalization", "LpNormalization"})
_FAMILIES: tuple[tuple[Callable[[GraphBuilder, QuantizationUnit], bool], OperatorLowering], ...] = (
    (is_channelwise_unit, lower_channelwise),
    (is_elementwise_unit, lower_elementwise),
)
"""Families of operators that one lowering serves, tried in this order before the registered operators."""
_ADVICE = "let it run on the host, or replace it by supported operators"


def lower_units(model: Model, match: RoundingMode, extra_outputs: Collection[str] = ()) -> GraphBuilder:
    """Lower what can be lowered; the rest gets a verdict with the reason and what to change."""
    builder = GraphBuilder(model, match, frozenset(extra_outputs))
    units = {u.quantize.name: u for u in find_quantization_units(model)}
    for source in _input_values(model, units):
        _add_input(builder, source)
    for node in model.nodes:
        unit = units.get(node.name)
        if unit is not None and unit.output not in builder.views:
            builder.producing_nodes[unit.output] = tuple(n.name for n in unit.nodes)
            if not _attempt(builder, unit.nodes, partial(_lower, builder, unit)):
                _add_host_computed_input(builder, unit)
        elif node.domain and find(node.domain, node.op) is not None:
            _attempt(builder, (node,), partial(lower_custom, builder, node))
    return builder


def _attempt(builder: GraphBuilder, nodes: Sequence[OnnxNode], action: Callable[[], None]) -> bool:
    """Lower some nodes, or leave the graph as it was and say why; tells whether they were lowered."""
    before, views = len(builder.nodes), dict(builder.views)
    try:
        action()
    except UnsupportedError as error:
        for node in builder.nodes[before:]:
            del builder.tensors[node.output]
        del builder.nodes[before:]
        builder.views = views
        for made in nodes:
            builder.targets.setdefault(made.name, (Target.HOST, str(error)))
            builder.remedies.setdefault(made.name, error.remedy if isinstance(error, UnsupportedPattern) else _ADVICE)
        return False
    return True


def _lower(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    for belongs, lower_family in _FAMILIES:
        if belongs(builder, unit):
            lower_family(builder, unit)
            return
    main = unit.main
    rule = registered_lowerings().get(main.op) if main is not None and main.domain == STANDARD else None
    if main is None or rule is None:
        raise UnsupportedPattern(_why_not(main.op if main else "this"), _ADVICE)
    inner = [n for n in unit.operators if n is not main and n not in unit.clamps]
    if inner:
        raise UnsupportedPattern(
            f"float values pass from {inner[-1].name!r} to {main.name!r} unrounded",
            f"quantize the output of {inner[-1].name!r}",
        )
    rule(builder, unit)


def _why_not(op: str) -> str:
    """Why an operator has no lowering."""
    if op in _DIVIDING:
        return f"{op} divides by what it computes, and the accelerator has no division"
    if op in ELEMENTWISE:
        return f"{op} has constants that differ from place to place, or joins tensors of different shapes"
    return f"there is no integer form of {op}"


def _input_values(model: Model, units: Mapping[str, QuantizationUnit]) -> tuple[str, ...]:
    """Stored integers that enter the graph: integer inputs, and quantized values with nothing quantized before them."""
    deep = set(model.inputs) - {v for v in model.inputs if model.dtype(v) in ("int8", "uint8")}
    shallow: set[str] = {v for v in model.inputs if v not in deep}
    found = [v for v in model.inputs if v in shallow]
    for node in model.nodes:
        dynamic = [v for v in node.inputs if v and v not in model.constants]
        unit = units.get(node.name)
        if not dynamic or any(v not in deep for v in dynamic):
            continue
        if unit is None:
            deep.update(node.outputs)
        else:
            found.append(unit.output)
    return tuple(found)


def _add_input(builder: GraphBuilder, stored: str) -> None:
    """Make stored integers an input of the graph."""
    maker = builder.model.producers.get(stored)
    reader = maker or next((n for n in builder.model.users(stored) if n.op == DEQUANTIZE), None)
    shape = builder.model.shape(stored)
    if reader is None or shape is None:
        return
    try:
        params = read_qparams(builder.model, reader)
        tensor = builder.tensor(stored, as_image(shape), params)
    except (UnsupportedPattern, UnsupportedError) as refusal:
        if maker is not None:
            builder.targets[maker.name] = (Target.HOST, str(refusal))
            builder.remedies[maker.name] = getattr(refusal, "remedy", _ADVICE)
        return
    builder.tensors[stored] = tensor
    builder.inputs.append(stored)
    builder.views[stored] = (stored, shape)


def _add_host_computed_input(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Make integers that the host computes an input of the graph, for what follows them."""
    shape = builder.model.shape(unit.output)
    if shape is None:
        return
    with contextlib.suppress(UnsupportedError):  # then what follows runs on the host too
        builder.tensors[unit.output] = builder.tensor(unit.output, as_image(shape), builder.params(unit))
        builder.inputs.append(unit.output)
        builder.host_computed.append(unit.output)
        builder.views[unit.output] = (unit.output, shape)


def graph_of(builder: GraphBuilder, file: Model) -> tuple[IntGraph, dict[str, str]]:
    """The integer graph, and for each of the model's stored integers that leave it the tensor that holds them.

    A view that a pass made leaves under its tensor's own name, which the model as it came in `file` knows.
    """
    outside = [n for n in builder.model.nodes if not builder.on_accelerator(n.name)]
    read = {v for n in outside if n.op != DEQUANTIZE for v in n.inputs} | set(builder.model.outputs)
    leaving: dict[str, str] = {}
    for stored, (tensor, _) in builder.views.items():
        floats = [out for n in builder.model.users(stored) if n.op == DEQUANTIZE for out in n.outputs]
        # A tensor leaves under one name; further views of it, and views of inputs, are the host's.
        if tensor in builder.inputs or tensor in leaving.values():
            continue
        if stored in read or any(f in read for f in floats):
            own = stored in file.producers or tensor not in builder.views
            leaving[stored if own else tensor] = tensor
    outputs = tuple(dict.fromkeys(leaving.values()))
    graph = IntGraph(builder.model.name, dict(builder.tensors), tuple(builder.nodes), tuple(builder.inputs), outputs)
    return graph, leaving
