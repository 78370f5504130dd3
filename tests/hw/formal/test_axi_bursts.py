"""Proofs of AXI rules about bursts, for all inputs and for ever.

A3.4.1: a burst has at most 256 beats and does not cross a 4 KiB boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Elaboratable, Module, Signal, Value
from amaranth.lib import data

from intloom.hw.bus.axi4 import BOUNDARY_BYTES
from intloom.hw.control.fetch import Fetch
from intloom.hw.dma.bursts import BurstSplitter, _State
from intloom.hw.dma.runs import RUN_BITS
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.formal.order import free_inputs
from tests.hw.formal.planted import each_night
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
NANO = preset("nano")
LONG = preset("large").replace(axi_burst=BOUNDARY_BYTES // preset("large").word_bytes)
"""Bursts as long as the distance of two boundaries."""
_MOST_BEATS = 256


def assert_burst_is_legal(
    m: Module, burst: data.View[data.StructLayout], params: HardwareParams, most: int = 0, boundary: int = 0
) -> None:
    """The length and the boundary of a burst; `most` beats and `boundary` bytes replace the standard's."""
    most, boundary = most or min(params.axi_burst, _MOST_BEATS), boundary or BOUNDARY_BYTES
    words = boundary // params.word_bytes
    last = Signal(len(burst.addr) + 1)
    bits = (words - 1).bit_length()
    m.d.comb += [
        last.eq(burst.addr + burst.beats_less_one),
        Assert((burst.beats_less_one < most) & (last[bits:] == burst.addr[bits:])),
    ]


class CheckedSplitter(BurstSplitter):
    """The splitter, with what its registers hold in every state: the induction's hypothesis."""

    def _offer(self, m: Module, state: _State) -> None:
        super()._offer(m, state)
        fsm = m._generated["fsm"]
        block = self._params.axi_burst
        with m.If(fsm.ongoing("TAKE")):
            m.d.comb += Assert(~state.open | ((state.end > state.first) & (state.end < block)))
            m.d.comb += Assert(~state.full & ~state.beyond)
        with m.Elif(fsm.ongoing("MEASURE")):
            m.d.comb += Assert((state.words != 0) & (state.at >= state.first))
            m.d.comb += Assert(~state.full)
        with m.Else():
            m.d.comb += Assert((state.end > state.first) & (state.full == (state.end >= block)))
            m.d.comb += Assert(state.beyond == (state.end > block))
            m.d.comb += Assert(state.end < (1 << RUN_BITS) + block - 1)


class SplitterBench(Elaboratable):
    """The splitter under all runs; with `empty`, also runs without a word, which its requirements exclude."""

    def __init__(self, params: HardwareParams, *, empty: bool = False, **rule: int) -> None:
        self.params, self.empty, self.rule = params, empty, rule

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kind = BurstSplitter if self.empty or self.rule else CheckedSplitter
        m.submodules.splitter = splitter = kind(self.params)
        m.d.comb += [*free_inputs(splitter)]
        if not self.empty:
            m.d.comb += Assume(splitter.i.payload.words != 0)
        with m.If(splitter.o.valid):
            assert_burst_is_legal(m, splitter.o.payload, self.params, **self.rule)
        return m


class CheckedFetch(Fetch):
    """Fetch, with what its registers hold in every state."""

    def _offer(self, m: Module, issue: Value, next_word: Signal, left: Signal, size: Signal) -> None:
        super()._offer(m, issue, next_word, left, size)
        fsm = m._generated["fsm"]
        free = self._params.axi_burst - next_word[: self._block_bits]
        with m.If(fsm.ongoing("MEASURE")):
            m.d.comb += Assert(left >= 0)
        with m.Elif(fsm.ongoing("COUNT")):
            m.d.comb += Assert((left >= 0) & (size == -free))
        with m.Elif(fsm.ongoing("ISSUE")):
            m.d.comb += Assert((left >= 0) | ((size > 0) & (left + free == size)))


class FetchBench(Elaboratable):
    """Fetch under any inputs, on a bus of its own."""

    def __init__(self, **rule: int) -> None:
        self.rule = rule

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fetch = fetch = Fetch(NANO) if self.rule else CheckedFetch(NANO)
        m.d.comb += [*free_inputs(fetch)]
        with m.If(fetch.bursts.valid):
            assert_burst_is_legal(m, fetch.bursts.payload, NANO, **self.rule)
        return m


@pytest.mark.parametrize("params", [NANO, LONG], ids=["nano", "long"])
def test_a_burst_of_a_move_stays_inside_its_block(params: HardwareParams, tmp_path: Path) -> None:
    assert LONG.axi_burst * LONG.word_bytes == BOUNDARY_BYTES
    result = prove(SplitterBench(params), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


_STRICTER: dict[str, Callable[[], Elaboratable]] = {
    "run without a word": lambda: SplitterBench(NANO, empty=True),
    "shorter": lambda: SplitterBench(NANO, most=NANO.axi_burst - 1),
    "fetch: smaller block": lambda: FetchBench(boundary=NANO.axi_burst * NANO.word_bytes // 2),
}


@pytest.mark.parametrize("name", each_night(_STRICTER))
def test_a_stricter_rule_is_refuted(name: str, tmp_path: Path) -> None:
    assert not prove(_STRICTER[name](), tmp_path, depth=12).holds


def test_a_burst_of_fetch_stays_inside_its_block(tmp_path: Path) -> None:
    result = prove(FetchBench(), tmp_path, depth=2, induction=True)
    assert result.holds, result.log
