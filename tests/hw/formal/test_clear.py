"""Soft reset equals reset, component by component: what no reset clears is never seen on a valid output.

`copies.py` states the property and how it is proved. The list of components comes from elaboration; `clear_rules.py`
has what each one requires, or the reason why it has no proof.
"""

import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from amaranth.hdl import Fragment
from amaranth.lib import wiring

from intloom import hw
from intloom.hw.control.fetch import Fetch
from intloom.hw.engine import Engine
from intloom.hw.mac.array.product import OneModule
from intloom.hw.vector import softmax
from intloom.hw.vector.depthwise_epilogue import DepthwiseEpilogue
from tests.hw.formal.clear_rules import (
    INSIDE,
    NOT_PROVED,
    ON_4_ROWS_AND_COLUMNS,
    PROMISED,
    PROVED,
    REQUIRED,
    rules_of,
)
from tests.hw.formal.conditions import UNSEEN, After, Boxes, Only, Steady, once
from tests.hw.formal.copies import always_equal, knowledge_holds
from tests.hw.formal.knowledge import Knowledge
from tests.hw.formal.planted import each_night, planted
from tests.support.shapes import SHAPES

pytestmark = [pytest.mark.slow, pytest.mark.needs("yosys")]
SHAPE = SHAPES["whole"]


@cache
def components(shape: str) -> dict[str, tuple[type[wiring.Component], dict[str, Any]]]:
    """Each kind of component of the engine with the arguments of its first instance.

    Of two classes with one name each has its folder before it.
    """
    elaborated: set[type[wiring.Component]] = set()
    made: dict[type[wiring.Component], dict[str, Any]] = {}

    def call(frame: FrameType, event: str, _: object) -> None:
        # Python makes a new dictionary at each use of `f_locals`.
        if frame.f_code.co_name not in ("__init__", "elaborate"):
            return
        component = frame.f_locals.get("self")
        if not isinstance(component, wiring.Component):
            return
        kind = type(component)
        if frame.f_code.co_name == "elaborate":
            elaborated.add(kind)
        elif kind not in made and frame.f_code is kind.__init__.__code__:
            names = inspect.getargvalues(frame).args[1:]
            made[kind] = {name: frame.f_locals[name] for name in names}

    before = sys.gettrace()
    sys.settrace(call)
    try:
        Fragment.get(Engine(SHAPES[shape]), OneModule(arrays=False) if shape == "bytes" else None)
    finally:
        sys.settrace(before)
    # Memories are Amaranth's own.
    kinds = [kind for kind in made if kind in elaborated and kind.__module__.startswith(hw.__name__)]
    count = Counter(kind.__name__ for kind in kinds)
    folders = {kind: kind.__module__.removeprefix(hw.__name__).split(".")[1] for kind in kinds}
    return {
        kind.__name__ if count[kind.__name__] == 1 else f"{folders[kind]}.{kind.__name__}": (kind, made[kind])
        for kind in kinds
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_each_component_has_a_proof_or_a_reason(shape: str) -> None:
    listed = [*PROVED, *(name for names in NOT_PROVED.values() for name in names)]
    assert len(listed) == len(set(listed))
    assert not components(shape).keys() - set(listed)


def test_the_page_counts_the_proofs() -> None:
    total = len(PROVED) + sum(map(len, NOT_PROVED.values()))
    partly = sum(UNSEEN in pairs.values() for pairs in PROVED.values())
    page = (Path(__file__).parents[3] / "docs" / "verification.md").read_text(encoding="utf-8")
    assert f"soft reset equals reset: {len(PROVED)} of {total} components" in page
    assert f"of {partly} of these without all of their data" in page


def _cases() -> Iterator[Any]:
    """Each component daily in a shape that has it."""
    for name, shape in product(PROVED, SHAPES):
        if name in ON_4_ROWS_AND_COLUMNS and (SHAPES[shape].rows, SHAPES[shape].cols) != (4, 4):
            continue
        daily = shape == ("halves" if name == "ParityChecker" else "whole")
        yield pytest.param(name, shape, marks=() if daily else pytest.mark.nightly)


@pytest.mark.parametrize(("name", "shape"), [*_cases()])
def test_soft_reset_equals_reset(name: str, shape: str, tmp_path: Path) -> None:
    if name not in components(shape):
        pytest.skip("the shape does not have this component")
    kind, arguments = components(shape)[name]
    assert always_equal(kind(**arguments), rules_of(name), tmp_path, _boxes(name, shape))


def _boxes(name: str, shape: str) -> Boxes:
    """What is known of the components inside one whose proof rests on theirs."""
    return {components(shape)[inside][0]: rules_of(inside) for inside in INSIDE.get(name, ())}


@pytest.mark.parametrize("name", each_night([name for name in PROVED if name != "ParityChecker"]))
def test_what_is_known_to_be_equal_is_equal(name: str, tmp_path: Path) -> None:
    kind, arguments = components("whole")[name]
    assert knowledge_holds(kind(**arguments), rules_of(name), tmp_path, _boxes(name, "whole"))


def test_a_wrong_rule_of_what_is_known_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice counts as known although its condition is not."""
    monkeypatch.setattr(Knowledge, "_chosen", lambda self, _, one, other: self._graph.both(one, other))
    kind, arguments = components("whole")["AccumulatorReadout"]
    rules, boxes = rules_of("AccumulatorReadout"), _boxes("AccumulatorReadout", "whole")
    assert not knowledge_holds(kind(**arguments), rules, tmp_path, boxes)


TOO_EARLY = {
    f"{name}.{port}": (name, port, replace(condition, cycles=condition.cycles - 1))
    for name, pairs in PROVED.items()
    for port, condition in pairs.items()
    if isinstance(condition, After | Steady)
}


@pytest.mark.parametrize("port", each_night(TOO_EARLY))
def test_data_that_counts_a_cycle_too_early_is_found(port: str, tmp_path: Path) -> None:
    name, port, condition = TOO_EARLY[port]
    kind, arguments = components("whole")[name]
    rules = rules_of(name)
    assert not always_equal(kind(**arguments), replace(rules, pairs={**rules.pairs, port: condition}), tmp_path)


@pytest.mark.parametrize("name", each_night(REQUIRED))
def test_without_what_a_component_requires_a_difference_is_found(name: str, tmp_path: Path) -> None:
    kind, arguments = components("whole")[name]
    rules = replace(rules_of(name), required=())
    assert not always_equal(kind(**arguments), rules, tmp_path, _boxes(name, "whole"))


RESTS_ON_PROMISES = [name for name, inside in INSIDE.items() if not PROMISED.keys().isdisjoint(inside)]


@pytest.mark.parametrize("name", each_night(RESTS_ON_PROMISES))
def test_without_what_a_component_inside_promises_a_difference_is_found(name: str, tmp_path: Path) -> None:
    kind, arguments = components("whole")[name]
    boxes = {inside: replace(rules, promised=()) for inside, rules in _boxes(name, "whole").items()}
    assert not always_equal(kind(**arguments), rules_of(name), tmp_path, boxes)


def test_a_promise_that_is_not_kept_is_found(tmp_path: Path) -> None:
    kind, arguments = components("whole")["OutputWalker"]
    rules = replace(rules_of("OutputWalker"), promised=[Only("active", once("o__valid"))])
    assert not always_equal(kind(**arguments), rules, tmp_path)


NOT_GIVEN = {
    "mac.ResultWriter": ("walker.start.eq(start)", "walker.start.eq(self.descriptors.valid & ~walker.active)"),
    "MoveFrontEnd": ("local_runs.push.eq(runs.o.valid & runs.o.ready)", "local_runs.push.eq(runs.o.ready)"),
    "StoreUnit": ("words.push.eq(reads[-1])", "words.push.eq(reads[0])"),
}
"""A walk starts in the first cycle in which it is on offer; a FIFO gets what is on no offer, or too early."""


@pytest.mark.parametrize("name", each_night(NOT_GIVEN))
def test_a_component_that_does_not_give_what_one_inside_requires_is_found(name: str, tmp_path: Path) -> None:
    kind, arguments = components("whole")[name]
    early = planted(kind, NOT_GIVEN[name])
    assert not always_equal(early(**arguments), rules_of(name), tmp_path, _boxes(name, "whole"))


UNCLEARED = {
    "ConstantsLoader": ("fire_kind = Signal(ConstantKind)", "fire_kind = Signal(ConstantKind, reset_less=True)"),
    "ConstantCheck": ("first = Signal(init=1)", "first = Signal(init=1, reset_less=True)"),
    "Dispatch": ("not_full = Signal()", "not_full = Signal(reset_less=True)"),
    "TilePlanner": ("self._phase = Signal(_Phase)", "self._phase = Signal(_Phase, reset_less=True)"),
    "StoreUnit": ("active = Signal()", "active = Signal(reset_less=True)"),
    "DepthwiseConstants": ("enables = Signal(TAPS + 2)", "enables = Signal(TAPS + 2, reset_less=True)"),
    "WeightFetcher": ("active = Signal()", "active = Signal(reset_less=True)"),
    "AccumulatorReadout": ("ending, bank = Signal(), Signal()", "ending, bank = Signal(), Signal(reset_less=True)"),
    "mac.ResultWriter": ("start = Signal()", "start = Signal(reset_less=True)"),
    "ZeroPointCorrection": (
        "number = Signal(CORRECTION_SET_BITS)",
        "number = Signal(CORRECTION_SET_BITS, reset_less=True)",
    ),
    "mac.Sequencer": ("        bank = Signal()", "        bank = Signal(reset_less=True)"),
    "vector.Sequencer": ("self._waiting = Signal()", "self._waiting = Signal(reset_less=True)"),
}
"""A register of each that a reset clears."""


@pytest.mark.parametrize("name", each_night(UNCLEARED))
def test_a_register_that_is_not_cleared_is_found(name: str, tmp_path: Path) -> None:
    kind, arguments = components("whole")[name]
    faulty = planted(kind, UNCLEARED[name])
    assert not always_equal(faulty(**arguments), rules_of(name), tmp_path, _boxes(name, "whole"))


def _uncleared(source: Any, count: str) -> Any:
    """The class or function with this counter, of groups in a slice, without a reset."""
    return planted(source, (count, count.removesuffix(")") + ", reset_less=True)"))


@pytest.mark.nightly
def test_a_counter_that_is_not_cleared_is_found(tmp_path: Path) -> None:
    """With one group a slice nothing would show it."""
    faulty = _uncleared(DepthwiseEpilogue, "count = Signal(range(max(2, self._slice_groups)))")
    rules = rules_of("DepthwiseEpilogue")
    assert not always_equal(faulty(SHAPE), rules, tmp_path, _boxes("DepthwiseEpilogue", "whole"))


def test_a_counter_that_is_not_cleared_is_found_by_valid_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty = _uncleared(softmax.collect_groups, 'count = Signal(range(max(2, groups)), name="groups_collected")')
    monkeypatch.setattr(softmax, "collect_groups", faulty)
    assert not always_equal(softmax.Softmax(SHAPE), rules_of("Softmax"), tmp_path)


FETCH_FAULTS = {
    "pointer": (
        "tail, head = Signal(index_bits + 1), Signal",
        "tail, head = Signal(index_bits + 1, reset_less=True), Signal",
    ),
    "space": ("init=blocks)", "init=blocks, reset_less=True)"),
    "outstanding": (
        "outstanding = Signal(range(blocks + 1))",
        "outstanding = Signal(range(blocks + 1), reset_less=True)",
    ),
}


@pytest.mark.parametrize("fault", each_night(FETCH_FAULTS))
def test_a_fetch_that_is_not_cleared_is_found(fault: str, tmp_path: Path) -> None:
    assert not always_equal(planted(Fetch, FETCH_FAULTS[fault])(SHAPE), rules_of("Fetch"), tmp_path)
