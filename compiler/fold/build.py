"""Builds the integer graph: lowers every unit that can be lowered and finds the border to the host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from intloom.common.errors import UnsupportedError
from intloom.compiler.custom import find
from intloom.compiler.fold import lower  # noqa: F401  # importing the lowerings registers them
from intloom.compiler.fold.bytewise import ELEMENTWISE
from intloom.compiler.fold.lower.channelwise import is_channelwise
from intloom.compiler.fold.lower.custom import lower_custom
from intloom.compiler.fold.lower.elementwise import is_bytewise
from intloom.compiler.fold.lowering import Lowering, Refusal, Verdict, as_image, rules
from intloom.compiler.fold.qparams import DEQUANTIZE, read_qparams
from intloom.compiler.fold.units import Unit, find_units
from intloom.compiler.importer import STANDARD, Model, OnnxNode
from intloom.compiler.ir import IntGraph
from intloom.hw.spec.arith import Match

_DIVIDING = frozenset({"LayerNormalization", "InstanceNormalization", "LpNormalization"})
_ADVICE = "let it run on the host, or replace it by supported operators"


def lower_units(model: Model, match: Match, extra_outputs: Collection[str] = ()) -> Lowering:
    """Lower what can be lowered; the rest gets a verdict with the reason and what to change."""
    low = Lowering(model, match, frozenset(extra_outputs))
    units = {u.quantize.name: u for u in find_units(model)}
    for source in _entries(model, units):
        _enter(low, source)
    for node in model.nodes:
        unit = units.get(node.name)
        if unit is not None and unit.output not in low.views:
            low.made_by[unit.output] = tuple(n.name for n in unit.nodes)
            if not _attempt(low, unit.nodes, partial(_lower, low, unit)):
                _enter_late(low, unit)
        elif node.domain and find(node.domain, node.op) is not None:
            _attempt(low, (node,), partial(lower_custom, low, node))
    return low


def _attempt(low: Lowering, nodes: Sequence[OnnxNode], action: Callable[[], None]) -> bool:
    """Lower some nodes, or leave the graph as it was and say why; tells whether they were lowered."""
    before, views = len(low.nodes), dict(low.views)
    try:
        action()
    except UnsupportedError as error:
        for node in low.nodes[before:]:
            del low.tensors[node.output]
        del low.nodes[before:]
        low.views = views
        for made in nodes:
            low.verdicts.setdefault(made.name, (Verdict.HOST, str(error)))
            low.remedies.setdefault(made.name, error.remedy if isinstance(error, Refusal) else _ADVICE)
        return False
    return True


def _lower(low: Lowering, unit: Unit) -> None:
    for family, belongs in (("channelwise", is_channelwise), ("elementwise", is_bytewise)):
        if belongs(low, unit):
            rules()[family](low, unit)
            return
    main = unit.main
    rule = rules().get(main.op) if main is not None and main.domain == STANDARD else None
    if main is None or rule is None:
        raise Refusal(_why_not(main.op if main else "this"), _ADVICE)
    inner = [n for n in unit.cone if n is not main and n not in unit.chain]
    if inner:
        raise Refusal(
            f"float values pass from {inner[-1].name!r} to {main.name!r} unrounded",
            f"quantise the output of {inner[-1].name!r}",
        )
    rule(low, unit)


def _why_not(op: str) -> str:
    """Why an operator has no lowering."""
    if op in _DIVIDING:
        return f"{op} divides by what it computes, and the accelerator has no division"
    if op in ELEMENTWISE:
        return f"{op} has constants that differ from place to place, or joins tensors of different shapes"
    return f"there is no integer form of {op}"


def _entries(model: Model, units: Mapping[str, Unit]) -> tuple[str, ...]:
    """Stored integers that enter the graph: integer inputs, and quantised values with nothing quantised before them."""
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


def _enter(low: Lowering, stored: str) -> None:
    """Make stored integers an input of the graph."""
    maker = low.model.producers.get(stored)
    reader = maker or next((n for n in low.model.users(stored) if n.op == DEQUANTIZE), None)
    shape = low.model.shape(stored)
    if reader is None or shape is None:
        return
    try:
        params = read_qparams(low.model, reader)
        tensor = low.tensor(stored, as_image(shape), params)
    except (Refusal, UnsupportedError) as refusal:
        if maker is not None:
            low.verdicts[maker.name] = (Verdict.HOST, str(refusal))
            low.remedies[maker.name] = getattr(refusal, "remedy", _ADVICE)
        return
    low.tensors[stored] = tensor
    low.entries.append(stored)
    low.views[stored] = (stored, shape)


def _enter_late(low: Lowering, unit: Unit) -> None:
    """Make integers that the host computes an input of the graph, for what follows them."""
    shape = low.model.shape(unit.output)
    if shape is None:
        return
    with contextlib.suppress(UnsupportedError):  # then what follows runs on the host too
        low.tensors[unit.output] = low.tensor(unit.output, as_image(shape), low.params(unit))
        low.entries.append(unit.output)
        low.late.append(unit.output)
        low.views[unit.output] = (unit.output, shape)


def graph_of(low: Lowering, file: Model) -> tuple[IntGraph, dict[str, str]]:
    """The integer graph, and for each of the model's stored integers that leave it the tensor that holds them.

    A view that a pass made leaves under its tensor's own name, which the model as it came in `file` knows.
    """
    outside = [n for n in low.model.nodes if not low.runs(n.name)]
    read = {v for n in outside if n.op != DEQUANTIZE for v in n.inputs} | set(low.model.outputs)
    leaving: dict[str, str] = {}
    for stored, (tensor, _) in low.views.items():
        floats = [out for n in low.model.users(stored) if n.op == DEQUANTIZE for out in n.outputs]
        # A tensor leaves under one name; further views of it, and views of inputs, are the host's.
        if tensor in low.entries or tensor in leaving.values():
            continue
        if stored in read or any(f in read for f in floats):
            own = stored in file.producers or tensor not in low.views
            leaving[stored if own else tensor] = tensor
    outputs = tuple(dict.fromkeys(leaving.values()))
    graph = IntGraph(low.model.name, dict(low.tensors), tuple(low.nodes), tuple(low.entries), outputs)
    return graph, leaving
