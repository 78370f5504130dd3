"""Soft reset equals reset, bounded: the whole engine, and the units that are too large for `test_clear.py`.

Nothing that counts differs in so many cycles after the reset, whatever the state before it, the instructions and the
data. The engine runs under run control on a memory that answers at once; a unit gets any inputs.
"""

from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw import engine
from intloom.hw.bus.axi4 import LENGTH_BITS
from intloom.hw.control import fetch
from intloom.hw.control.run_control import RunControl
from intloom.hw.engine import Engine
from intloom.hw.mac import unit as mac_unit
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector import unit as vector_unit
from tests.hw.formal.conditions import Pairs
from tests.hw.formal.copies import equal_for
from tests.hw.formal.planted import each_night, planted
from tests.hw.formal.test_clear import FETCH_FAULTS, components
from tests.support.nightly import with_nightly
from tests.support.shapes import SHAPES

pytestmark = [pytest.mark.slow, pytest.mark.needs("yosys")]
PARAMS = SHAPES["nano"].replace(rows=16, vector_lanes=4, axi_data_bits=128, clock_gating=False)
"""Four columns and the shortest fetch of an instruction: four words."""
_INSTRUCTIONS, _MEMORY_WORDS = 4, 1 << 20
_FAULT: Pairs = {"fault__fault": "fault__valid"}
_ENGINE = {
    **dict.fromkeys((("fault__valid",), ("fault__fault",)), 20),
    **dict.fromkeys((("ar__valid",), ("ar__payload",)), 28),
    ("ended",): 36,
    **dict.fromkeys((("aw__valid",), ("aw__payload",), ("w__valid",), ("w__payload",), ("done",)), 50),
    ("started",): 45,
}
"""Cycles for each output. The first instruction is issued after 43 or more; what the check of the program reaches is
hard to search, since it is an exclusive or of all bits."""
_UNIT: Pairs = {"unit__cause": "unit__fault", "unit__fault_index": "unit__fault"}
_UNITS: dict[str, tuple[int, Pairs]] = {
    "Dispatch": (
        20,
        {
            **dict.fromkeys(("queues__unit", "queues__slot", "queues__word", "queues__commit"), "queues__valid"),
            **dict.fromkeys(("end_unit", "end_wait"), "end_write"),
            "fault": "fault_valid",
        },
    ),
    "LoadUnit": (
        8,
        {
            **_UNIT,
            **dict.fromkeys(("scratch__addr", "scratch__data", "scratch__mask"), "scratch__valid"),
            **dict.fromkeys(("weights__addr", "weights__data"), "weights__valid"),
        },
    ),
    "MacUnit": (
        20,
        {
            **_UNIT,
            **{f"{port}__addr": f"{port}__valid" for port in ("act0", "act1", "residual", "weights")},
            **dict.fromkeys(("results__addr", "results__data", "results__mask"), "results__valid"),
        },
    ),
    "VectorUnit": (
        10,
        {
            **_UNIT,
            **{f"{port}__addr": f"{port}__valid" for port in ("a", "b", "out")},
            **dict.fromkeys(("out__data", "out__mask"), "out__valid"),
        },
    ),
}
"""Cycles for a unit in any state, and which ports count only while another one is high."""
_SENT = ("ar", "aw", "w")
_SEEN = ("started", "done", "ended")


class Run(wiring.Component):
    """The engine with run control, which starts a program after the reset, on a memory that holds any words."""

    def __init__(self, params: HardwareParams) -> None:
        self._engine = Engine(params)
        bus, seen = self._engine.bus.signature.members, self._engine.signature.members
        super().__init__(
            {
                "data": In(params.word_bits),
                **{name: bus[name] for name in _SENT},
                **{name: seen[name] for name in _SEEN},
                "fault": seen["fault"],
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The memory transfers one burst of each direction at a time."""
        m = Module()
        m.submodules.engine = inner = self._engine
        m.submodules.control = control = RunControl()
        bus, begun = inner.bus, Signal()
        beats, answers = Signal(LENGTH_BITS + 1), Signal(4)
        for name in _SENT:
            seen, sent = getattr(self, name), getattr(bus, name)
            m.d.comb += [seen.valid.eq(sent.valid), seen.payload.eq(sent.payload)]
        m.d.comb += [
            *(getattr(self, name).eq(getattr(inner, name)) for name in _SEEN),
            control.start.eq(~begun),
            control.fault.eq(inner.fault.valid),
            control.ended.eq(inner.ended),
            control.bus_idle.eq(inner.bus_idle),
            inner.launch.eq(control.launch),
            inner.running.eq(control.running),
            inner.halt.eq(control.halt),
            inner.length.eq(_INSTRUCTIONS),
            inner.window.end.eq(_MEMORY_WORDS),
            inner.window.limit.eq(_MEMORY_WORDS),
            bus.r.valid.eq(beats != 0),
            bus.r.payload.data.eq(self.data),
            bus.r.payload.last.eq(beats == 1),
            bus.b.valid.eq(answers != 0),
        ]
        wiring.connect(m, inner.fault, wiring.flipped(self.fault))
        ar, r, w, b = bus.ar, bus.r, bus.w, bus.b
        m.d.comb += [ar.ready.eq(beats == 0), bus.aw.ready.eq(1), w.ready.eq(1)]
        m.d.sync += [
            begun.eq(1),
            answers.eq(answers + (w.valid & w.ready & w.payload.last) - (b.valid & b.ready)),
        ]
        with m.If(ar.valid & ar.ready):
            m.d.sync += beats.eq(ar.payload.len + 1)
        with m.Elif(r.valid & r.ready):
            m.d.sync += beats.eq(beats - 1)
        return m


def _equal(name: str, folder: Path) -> bool:
    """The property of a unit, for all its outputs."""
    kind, arguments = components("nano")[name]
    cycles, pairs = _UNITS[name]
    unit = kind(**arguments)
    members = unit.signature.flatten(unit)
    outputs = tuple("__".join(map(str, path)) for path, member, _ in members if member.flow is Out)
    return equal_for(unit, pairs, {outputs: cycles}, folder)


@pytest.mark.parametrize("name", with_nightly(_UNITS, {"Dispatch", "MacUnit", "VectorUnit"}))
def test_a_unit_is_as_after_a_reset(name: str, tmp_path: Path) -> None:
    assert _equal(name, tmp_path)


_UNCLEARED = {
    "MacUnit": (
        mac_unit,
        ("banks_in_use = Signal(range(_BANKS + 1))", "banks_in_use = Signal(range(3), reset_less=True)"),
    ),
    "VectorUnit": (vector_unit, ("self._running = Signal()", "self._running = Signal(reset_less=True)")),
}
"""A register of its sequencer without a reset."""


@pytest.mark.parametrize("name", each_night(_UNCLEARED))
def test_a_unit_that_is_not_cleared_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, register = _UNCLEARED[name]
    monkeypatch.setattr(module, "Sequencer", planted(module.Sequencer, register))
    assert not _equal(name, tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_program_runs_as_after_a_reset(tmp_path: Path) -> None:
    assert equal_for(Run(PARAMS), _FAULT, _ENGINE, tmp_path)


@pytest.mark.nightly
def test_an_engine_that_is_not_cleared_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The space that the fetch has for words of the program."""
    faulty = planted(fetch.Fetch, FETCH_FAULTS["space"])
    monkeypatch.setattr(engine, "Fetch", faulty)
    assert not equal_for(Run(PARAMS), _FAULT, {("ar__valid",): 28}, tmp_path)
