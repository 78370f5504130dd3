"""Fetch, loads and stores go on while memory, scratchpad and dispatch answer: bounded, from reset, any instructions.

As long as a word is missing, one moves at least every so many cycles. With the bounded waits of the arbiter
(`test_read_arbiter`) and of the wait board (`test_waits`), and with waits for earlier instructions only, no program
waits for ever. The counts of an instruction are free, so a run may be followed by any other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Elaboratable, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import wiring

from intloom.hw.bus.axi4 import Resp
from intloom.hw.control.fetch import Fetch
from intloom.hw.dma import load
from intloom.hw.dma.front_end import MoveFrontEnd
from intloom.hw.dma.load import LoadUnit
from intloom.hw.dma.store import StoreUnit
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import preset
from tests.hw.formal.order import BurstsInFlight, assume_stream_holds, free_inputs
from tests.hw.formal.planted import each_night, planted
from tests.hw.formal.prover import prove
from tests.support.nightly import with_nightly

pytestmark = pytest.mark.slow
PARAMS = preset("nano").replace(axi_burst=8, axi_outstanding=2)
"""A block has more words than there may be runs in flight, so that a burst may wait for runs."""
PATIENCE = 1
"""Cycles that memory, scratchpad or dispatch let a request, or data that is due, wait at most."""


def _soon(m: Module, wanted: Value, comes: Value) -> None:
    """What is wanted comes after at most `PATIENCE` cycles."""
    waited = Signal(range(PATIENCE + 1))
    m.d.sync += waited.eq(Mux(wanted & ~comes, waited + 1, 0))
    m.d.comb += Assume(~wanted | comes | (waited != PATIENCE))


def _memory_reads(m: Module, bursts: Any, r: Any) -> None:
    """A memory that accepts `axi_outstanding` bursts, as the arbiter does, and sends their beats."""
    reads, room = BurstsInFlight(m, "reads"), Signal()
    reads.follow(bursts.valid & bursts.ready, bursts.payload.beats_less_one, r.valid & r.ready)
    m.d.comb += [
        room.eq(reads.count != PARAMS.axi_outstanding),
        Assume(~bursts.ready | room),
        Assume(~r.valid | ((reads.count != 0) & (r.payload.last == reads.is_last))),
    ]
    _soon(m, bursts.valid & room, bursts.ready)
    _soon(m, reads.count != 0, r.valid)
    assume_stream_holds(m, r.valid, r.ready, r.payload)


def _instructions(m: Module, unit: Any, kind: Kind) -> Signal:
    """Any instructions without a fault; returns whether one is in flight."""
    spec = BY_KIND[kind]
    assume_stream_holds(m, unit.valid, unit.ready, unit.instruction)
    for field in (spec.field(name) for name in ("n0", "n1", "n2")):
        first = spec.offsets[field.name]
        m.d.comb += Assume(unit.instruction[first : first + field.width] != 0)
    in_flight = Signal(range(64))
    m.d.sync += in_flight.eq(in_flight + (unit.valid & unit.ready) - unit.done)
    m.d.comb += [Assume(~unit.halt), Assume(~unit.fault)]
    return in_flight


def _load(m: Module, dut: LoadUnit) -> tuple[Value, Value]:
    in_flight = _instructions(m, dut.unit, Kind.LOAD)
    _memory_reads(m, dut.bursts, dut.r)
    _soon(m, dut.scratch.valid, dut.scratch.ready)
    m.d.comb += Assume(dut.r.payload.resp == Resp.OKAY)
    return in_flight != 0, (dut.scratch.valid & dut.scratch.ready) | dut.weights.valid | dut.unit.done


def _store(m: Module, dut: StoreUnit) -> tuple[Value, Value]:
    in_flight, unanswered = _instructions(m, dut.unit, Kind.STORE), Signal(range(8))
    beat, answer = dut.w.valid & dut.w.ready, dut.b.valid & dut.b.ready
    m.d.sync += unanswered.eq(unanswered + (beat & dut.w.payload.last) - answer)
    m.d.comb += [Assume(~dut.b.valid | (unanswered != 0)), Assume(dut.b.payload.resp == Resp.OKAY)]
    for port in (dut.scratch, dut.aw, dut.w):
        _soon(m, port.valid, port.ready)
    _soon(m, unanswered != 0, dut.b.valid)
    assume_stream_holds(m, dut.b.valid, dut.b.ready, dut.b.payload)
    return in_flight != 0, beat | answer | dut.unit.done


def _fetch(m: Module, dut: Fetch) -> tuple[Value, Value]:
    started = Signal()
    with m.If(dut.start):
        m.d.sync += started.eq(1)
    m.d.comb += [Assume(~(started & dut.start)), Assume(~dut.halt), Assume(~dut.outside)]
    _memory_reads(m, dut.bursts, dut.r)
    _soon(m, dut.words.valid, dut.words.ready)
    return started & ~dut.exhausted, dut.words.valid & dut.words.ready


@dataclass(frozen=True)
class Case:
    """A component in an environment that answers, and the number of cycles in which a word moves at the latest."""

    component: type[wiring.Component]
    environment: Callable[[Module, Any], tuple[Value, Value]]
    limit: int
    depth: int
    """Cycles from reset that `make test` looks at."""
    nightly_depth: int


CASES = {
    "load": Case(LoadUnit, _load, 30, 36, 44),
    "store": Case(StoreUnit, _store, 30, 36, 44),
    "fetch": Case(Fetch, _fetch, 10, 26, 44),
}


class Bench(Elaboratable):
    """The component of a case, or one with a planted fault; `limit` replaces the case's."""

    def __init__(
        self, case: Case, *, limit: int | None = None, component: type[wiring.Component] | None = None
    ) -> None:
        self.case = case
        self.limit = case.limit if limit is None else limit
        self.component = component or case.component

    def elaborate(self, platform: object) -> Module:
        """Count the cycles without a word; a breach is remembered."""
        m = Module()
        m.submodules.dut = dut = self.component(PARAMS)
        window = dut.window
        m.d.comb += [
            *free_inputs(dut, "window"),
            *(window.base.eq(0), window.end.eq(1 << len(window.base)), window.limit.eq(~0)),
            Assume(~ResetSignal()),
        ]
        missing, moves = self.case.environment(m, dut)
        cycles, broken = Signal(range(self.limit + 2)), Signal()
        m.d.sync += [
            cycles.eq(Mux(missing & ~moves, cycles + (cycles <= self.limit), 0)),
            broken.eq(broken | (cycles > self.limit)),
        ]
        m.d.comb += Assert(~broken & (cycles <= self.limit))
        return m


_DEPTHS = [
    pytest.param(name, depth, marks=pytest.mark.nightly if depth == case.nightly_depth else ())
    for name, case in CASES.items()
    for depth in (case.depth, case.nightly_depth)
]


@pytest.mark.parametrize(("name", "depth"), _DEPTHS)
def test_words_move(name: str, depth: int, tmp_path: Path) -> None:
    result = prove(Bench(CASES[name]), tmp_path, depth=depth, first=depth - 1)
    assert result.holds, result.log


@pytest.mark.parametrize("name", with_nightly(CASES, {"load", "store"}))
def test_they_may_rest_for_some_cycles(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert not prove(Bench(case, limit=case.limit // 2), tmp_path, depth=case.depth, first=case.depth - 1).holds


_WITHOUT_FLUSH = ("splitter.flush.eq(~local_runs.credit_available)", "splitter.flush.eq(0)")
_ADDRESS_AFTER_DATA = ("self.aw.valid.eq(offered.valid &", "self.aw.valid.eq(offered.valid & self.w.ready &")
_NOT_WHILE_READY = ("~self.bursts.valid & ~outside", "~self.bursts.ready & ~outside")


@pytest.mark.parametrize("name", each_night(CASES))
def test_a_component_that_stops_is_refuted(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst waits for runs that wait for its data; VALID waits for another channel's READY, or for READY to fall."""
    case = CASES[name]
    if name == "load":
        monkeypatch.setattr(load, "MoveFrontEnd", planted(MoveFrontEnd, _WITHOUT_FLUSH))
        component = case.component
    else:
        component = planted(case.component, _ADDRESS_AFTER_DATA if name == "store" else _NOT_WHILE_READY)
    bench = Bench(case, component=component)
    assert not prove(bench, tmp_path, depth=case.depth, first=case.depth - 1).holds
