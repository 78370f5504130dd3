"""Proofs that no address outside the window reaches the bus, for all instructions and windows and for ever.

Instructions are free but for a requirement that dispatch checks: a run has at least one word.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Elaboratable, Module, Signal, Value
from amaranth.lib import data, wiring

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.control.arbiter import ReadArbiter
from intloom.hw.control.fetch import Fetch
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.dma import front_end
from intloom.hw.dma.bursts import BurstSplitter, _State
from intloom.hw.dma.load import LoadUnit
from intloom.hw.dma.store import StoreUnit
from intloom.hw.spec.params import preset
from tests.hw.formal import test_axi_bursts as bursts
from tests.hw.formal.order import free_inputs, second_item
from tests.hw.formal.planted import each_night, planted, rebased, with_locals
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
NANO = preset("nano").replace(axi_outstanding=4)


def _lies_inside(window: wiring.PureInterface, addr: Value, beats_less_one: Value) -> Value:
    """Whether a burst from a word address lies in the window; nothing here is cut off."""
    return (addr >= window.base) & (addr + beats_less_one < window.end)


def _relations(window: wiring.PureInterface) -> list[Assume]:
    """What the registers guarantee of a window's values."""
    return [
        Assume(window.wraps | (window.end == window.base + window.limit)),
        Assume(window.wraps | (window.end <= 1 << len(window.base))),
    ]


class ConfinedSplitter(bursts.CheckedSplitter):
    """The splitter, with what its registers hold about the window."""

    def _is_inside(self, m: Module, state: _State) -> Value:
        inside = super()._is_inside(m, state)
        bits, window, burst = state.block_bits, self.window, self.o.payload
        m.d.comb += Assume(~self.i.valid | (self.i.payload.words != 0))
        with m.If(m._generated["fsm"].ongoing("DECIDE")):
            m.d.comb += [
                Assert(state.above == (Value.cast(state.first) + (state.block << bits) >= window.base)),
                Assert(state.below == (state.block < window.end[bits:])),
                Assert(state.edge == (state.block == window.end[bits:])),
            ]
        m.d.comb += Assert(~self.o.valid | _lies_inside(window, burst.addr, burst.beats_less_one))
        return inside


class UsedSplitter(BurstSplitter):
    """The splitter with the requirement alone, for counterexamples."""

    def _is_inside(self, m: Module, state: _State) -> Value:
        m.d.comb += Assume(~self.i.valid | (self.i.payload.words != 0))
        return super()._is_inside(m, state)


class ConfinedFetch(bursts.CheckedFetch):
    """Fetch, with where its next block lies: from there as many words are left as the program has up to its end."""

    def _issue(self, m: Module, first: Value, block_read: Value) -> Value:
        result, found = with_locals(super()._issue, m, first, block_read)
        issue, window = found["_issue"], self.window
        next_word, left, reach = issue["next_word"], issue["left"], issue["reach"]
        ongoing, free = issue["fsm"].ongoing, self._params.axi_burst - next_word[: self._block_bits]
        inside = Signal()
        m.d.comb += [*_relations(window), inside.eq((reach <= window.limit) & ~window.wraps)]
        end = window.base + reach
        with m.If(ongoing("MEASURE") | ongoing("COUNT")):
            # Behind the last word the address may be that after the end of the address space, which is 0.
            exact = (next_word >= window.base) & (next_word + left == end)
            m.d.comb += Assert(~inside | (left == 0) | exact)
        with m.Elif(ongoing("ISSUE")):
            m.d.comb += [
                Assert(issue["outside"] == ~inside),
                Assert(~inside | ((next_word >= window.base) & (next_word + free + left == end))),
            ]
        with m.If(ongoing("COUNT")):
            m.d.comb += Assert((issue["outside"] == ~inside) & (issue["none_left"] == (left == 0)))
        burst = self.bursts.payload
        m.d.comb += Assert(~self.bursts.valid | _lies_inside(window, burst.addr, burst.beats_less_one))
        return result


class ConfinedArbiter(ReadArbiter):
    """The arbiter, with what its skid buffer holds."""

    def __init__(self, window: wiring.PureInterface) -> None:
        super().__init__(NANO)
        self.window = window

    def _arbitrate(self, m: Module, owners: CreditFifo, requests: SkidBuffer) -> None:
        super()._arbitrate(m, owners, requests)
        for valid, burst in ((requests.o.valid, requests.o.payload), (~requests.i.ready, second_item(m, requests))):
            m.d.comb += Assert(~valid | _lies_inside(self.window, burst.addr, burst.beats_less_one))


class Bench(Elaboratable):
    """Fetch and load with their arbiter, and store, under any inputs in any constant window."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fetch, load, store = ConfinedFetch(NANO), LoadUnit(NANO), StoreUnit(NANO)
        window = fetch.window
        arbiter = ConfinedArbiter(window)
        m.submodules.fetch, m.submodules.load, m.submodules.store, m.submodules.arbiter = fetch, load, store, arbiter
        for name in ("base", "end", "limit", "wraps"):
            member = getattr(window, name)
            m.d.comb += member.eq(AnyConst(len(member)))
            m.d.comb += [getattr(unit.window, name).eq(member) for unit in (load, store)]
        for component, driven in ((fetch, ("r",)), (load, ("r",)), (store, ()), (arbiter, ("fetch", "load"))):
            kept = ("window", *driven, *(("bursts",) if driven == ("r",) else ()))
            if component is arbiter:
                kept += ("fetch_r", "load_r")
            m.d.comb += [*free_inputs(component, *kept)]
        wiring.connect(m, fetch.bursts, arbiter.fetch)
        wiring.connect(m, load.bursts, arbiter.load)
        wiring.connect(m, arbiter.fetch_r, fetch.r)
        wiring.connect(m, arbiter.load_r, load.r)
        for channel in (arbiter.ar, store.aw):
            _assert_address_inside(m, window, channel.valid, channel.payload)
        return m


class Alone(Elaboratable):
    """Store or fetch alone, for counterexamples, with the relations of a window's values."""

    def __init__(self, unit: StoreUnit | Fetch) -> None:
        self.unit = unit

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit, window = self.unit, self.unit.window
        for name in ("base", "end", "limit", "wraps"):
            m.d.comb += getattr(window, name).eq(AnyConst(len(getattr(window, name))))
        m.d.comb += [*free_inputs(self.unit, "window"), *_relations(window)]
        if isinstance(self.unit, StoreUnit):
            _assert_address_inside(m, window, self.unit.aw.valid, self.unit.aw.payload)
        else:
            bursts = self.unit.bursts
            m.d.comb += Assert(~bursts.valid | _lies_inside(window, bursts.payload.addr, bursts.payload.beats_less_one))
        return m


def _assert_address_inside(
    m: Module, window: wiring.PureInterface, valid: Value, payload: data.View[data.StructLayout]
) -> None:
    """As the bus sees it: the first and the last byte of a burst."""
    size = (NANO.word_bytes - 1).bit_length()
    with m.If(valid):
        m.d.comb += [
            Assert(payload.addr >= window.base << size),
            Assert(payload.addr + (payload.len << size) + NANO.word_bytes - 1 < window.end << size),
        ]


def test_no_address_outside_the_window_reaches_the_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On AR and AW: instruction fetch and prefetch, loads and stores."""
    monkeypatch.setattr(front_end, "BurstSplitter", ConfinedSplitter)
    # A whole question takes a third of the time: much of this bench is additions of addresses.
    result = prove(Bench(), tmp_path, depth=2, induction=True, whole=True)
    assert result.holds, result.log


ALONE = 6
"""Cycles in which every planted fault lets a burst out."""
_PLANTED = {
    "no lower bound": ("return state.above & (", "return ("),
    "a word too many": ("(state.end[:bits] <= end)", "(state.end[:bits] <= end + 1)"),
    "a block too many": ("state.below.eq(state.block < end_block)", "state.below.eq(state.block <= end_block)"),
    "the end of a full block": ("& ~state.full & (", "& ("),
}


@pytest.mark.nightly
def test_what_is_right_is_not_refuted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_end, "BurstSplitter", UsedSplitter)
    for number, unit in enumerate((StoreUnit(NANO), Fetch(NANO))):
        (folder := tmp_path / str(number)).mkdir()
        assert prove(Alone(unit), folder, depth=ALONE).holds


@pytest.mark.parametrize("name", each_night(_PLANTED))
def test_a_splitter_that_lets_a_burst_out_is_refuted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_end, "BurstSplitter", rebased(UsedSplitter, planted(BurstSplitter, _PLANTED[name])))
    assert not prove(Alone(StoreUnit(NANO)), tmp_path, depth=ALONE).holds


def test_a_fetch_beyond_the_window_is_refuted(tmp_path: Path) -> None:
    faulty = planted(Fetch, ("(reach > self.window.limit)", "(reach > self.window.limit + 1)"))
    assert not prove(Alone(faulty(NANO)), tmp_path, depth=ALONE).holds
