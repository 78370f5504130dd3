"""Proofs of AXI rules about writes and about the register bank, for all inputs and for ever.

A3.4.1: a burst has AWLEN + 1 beats of a whole word, and WLAST is high on the last one only. A3.2.1: addresses and beats
on offer stay, unchanged.
A3.3.1: a response is accepted once for each burst. A3.1.2: VALID is low in reset.
"""

from pathlib import Path
from typing import Any

import pytest
from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import (
    Assert,
    Assume,
    ClockDomain,
    ClockSignal,
    DomainRenamer,
    Elaboratable,
    Module,
    Mux,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import wiring

from intloom.hw.bus.axi4 import LENGTH_BITS, Burst, Resp
from intloom.hw.control.arbiter import ReadArbiter
from intloom.hw.control.counters import Counters
from intloom.hw.control.fetch import Fetch
from intloom.hw.control.registers import Registers
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.dma.load import LoadUnit
from intloom.hw.dma.store import READ_AHEAD_WORDS, StoreUnit
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import ADDRESS_BITS, COUNTERS, REGISTER_BYTES, REGISTERS, Access
from tests.hw.formal.order import FreeBench, assert_stream_holds, free_inputs
from tests.hw.formal.planted import each_night, planted, rebased, with_locals
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
NANO = preset("nano")


class CheckedStore(StoreUnit):
    """The store unit with the rules of its channels, and what induction has to know of its FIFOs.

    One burst, chosen freely among all, is followed from AW to its last beat on W.
    """

    def elaborate(self, platform: object) -> Module:
        m, found = with_locals(super().elaborate, platform)
        lengths, words = found["_send_data"]["lengths"], found["_send_data"]["words"]
        active, beats_left = found["_send_data"]["active"], found["_send_data"]["beats_left"]
        awaited = found["_receive_responses"]["awaited"]
        front = found["_receive_responses"]["front"]
        sent, beat = Signal(), Signal()
        m.d.comb += [sent.eq(self.aw.valid & self.aw.ready), beat.eq(self.w.valid & self.w.ready)]
        unsent = self._follow_burst(m, lengths, active, beats_left, sent, beat)
        self._check_fifo(m, lengths, NANO.axi_outstanding, lengths.level)
        in_flight = sum(found["_read"]["reads"])
        self._check_fifo(m, words, READ_AHEAD_WORDS, words.level + in_flight)
        assert_stream_holds(m, self.w.valid, self.w.ready, self.w.payload)
        address, word_bits = self.aw.payload, (NANO.word_bytes - 1).bit_length()
        assert_stream_holds(m, self.aw.valid, self.aw.ready, address)
        with m.If(self.aw.valid):
            whole = (address.size == word_bits) & (address.addr[:word_bits] == 0)
            m.d.comb += Assert(whole & (address.burst == Burst.INCR))
        self._count_responses(m, awaited, front, unsent, beat)
        return m

    def _follow_burst(
        self, m: Module, lengths: CreditFifo, active: Value, beats_left: Value, sent: Value, beat: Value
    ) -> Signal:
        """Beats of the chosen burst; returns how many bursts on AW lack their last beat."""
        unsent, ahead = (Signal(range(NANO.axi_outstanding + 4), name=name) for name in ("unsent", "ahead"))
        watching, length, beats = Signal(), Signal(LENGTH_BITS), Signal(LENGTH_BITS)
        ends, turn = Signal(), Signal()
        m.d.comb += [ends.eq(beat & self.w.payload.last), turn.eq(watching & (ahead == 0))]
        m.d.sync += unsent.eq(unsent + sent - ends)
        with m.If(sent & ~watching & AnySeq(1)):
            m.d.sync += [watching.eq(1), length.eq(self.aw.payload.len), beats.eq(0), ahead.eq(unsent - ends)]
        with m.Elif(turn & beat):
            m.d.sync += [beats.eq(beats + 1), watching.eq(~ends)]
        with m.Elif(watching & ends):
            m.d.sync += ahead.eq(ahead - 1)
        port = lengths.memory.read_port(domain="comb")
        m.d.comb += [
            Assert(~self.w.valid | (unsent != 0)),
            Assert(~turn | ~self.w.valid | (self.w.payload.last == (beats == length))),
            # The burst's length, in the FIFO or, for the first one, in the counter.
            Assert(unsent == lengths.level + active),
            Assert(~watching | (ahead < unsent)),
            Assert(~turn | ~active | ((beats <= length) & (beats_left == length - beats))),
            Assert(turn | ~watching | (beats == 0)),
            Assert(active | (beats == 0) | ~watching),
            port.addr.eq(lengths.head + ahead - active),
            Assert(~watching | (turn & active) | (port.data == length)),
        ]
        return unsent

    def _check_fifo(self, m: Module, fifo: CreditFifo, depth: int, taken: Value) -> None:
        m.d.comb += [
            Assert((fifo.tail - fifo.head)[: len(fifo.head)] == fifo.level[: len(fifo.head)]),
            Assert(fifo.credits + taken == depth),
            Assert((fifo.o.valid == (fifo.level != 0)) & (fifo.credit_available == (fifo.credits != 0))),
        ]

    def _count_responses(self, m: Module, awaited: CreditFifo, front: Any, unsent: Value, beat: Value) -> None:
        """A response is accepted for a burst that was issued, once; the slave sends it after the last beat."""
        unanswered, complete = (
            Signal(range(NANO.axi_outstanding + 4), name=name) for name in ("unanswered", "complete")
        )
        accepted = Signal()
        m.d.comb += accepted.eq(self.b.valid & self.b.ready)
        m.d.sync += [
            unanswered.eq(unanswered + front.issued - accepted),
            complete.eq(complete + (beat & self.w.payload.last) - accepted),
        ]
        self._check_fifo(m, awaited, NANO.axi_outstanding, awaited.level)
        m.d.comb += [
            Assume(~self.b.valid | (complete != 0)),
            Assert(~self.b.ready | (unanswered != 0)),
            Assert(unanswered == awaited.level),
            # Every burst is offered, on its way, or complete: no other response than its own is accepted for it.
            Assert(unanswered == front.bursts.valid + unsent + complete),
            Assert(unanswered <= NANO.axi_outstanding),
        ]


class ResetBench(Elaboratable):
    """Everything that drives a VALID, reset at any time; with `fault`, the reset does not reach it."""

    def __init__(self, fault: bool = False) -> None:
        self.fault = fault

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.fault:
            m.domains.unreset = ClockDomain(reset_less=True)
            m.d.comb += ClockSignal("unreset").eq(ClockSignal())
        rename = DomainRenamer("unreset") if self.fault else lambda component: component
        components: dict[str, wiring.Component] = {
            kind.__name__: kind(NANO) for kind in (StoreUnit, Fetch, LoadUnit, ReadArbiter, Registers)
        }
        was_reset = Signal(reset_less=True)
        m.d.sync += was_reset.eq(ResetSignal())
        for name, component in components.items():
            m.submodules[name] = rename(component)
            m.d.comb += [*free_inputs(component)]
        store, fetch, load, arbiter, registers = components.values()
        valids = [store.aw.valid, store.w.valid, fetch.bursts.valid, load.bursts.valid, arbiter.ar.valid]
        valids += [registers.bus.r.valid, registers.bus.b.valid]
        m.d.comb += [Assert(~was_reset | ~valid) for valid in valids]
        return m


class CheckedRegisters(Registers):
    """The register bank. A hole is an address without a register; with `register_errors` it ends in an error."""

    def elaborate(self, platform: object) -> Module:
        m, found = with_locals(super().elaborate, platform)
        bus, word = self.bus, found["_serve_reads"]["word"]
        words = range(1 << ADDRESS_BITS >> 2)
        written = {r.offset // REGISTER_BYTES for r in REGISTERS if r.access is not Access.RO}
        holes = [w for w in words if w not in {r.offset // REGISTER_BYTES for r in REGISTERS}]
        asked, hole, wrong = Signal.like(word, name="asked"), Signal(), Signal()
        with m.If(bus.ar.valid & bus.ar.ready):
            m.d.sync += asked.eq(bus.ar.payload.addr // REGISTER_BYTES)
        with m.Switch(asked), m.Case(*holes):
            m.d.comb += hole.eq(1)
        with m.If(bus.aw.valid & bus.aw.ready):
            m.d.sync += wrong.eq(1)
            with m.Switch(bus.aw.payload.addr // REGISTER_BYTES), m.Case(*written):
                m.d.sync += wrong.eq(0)
        errors = int(self._params.register_errors)
        read_error, write_error = (Mux(error & errors, Resp.SLVERR, Resp.OKAY) for error in (hole, wrong))
        # `Counters` reads 0 at an index without a counter; see the proof of it below.
        unused = self.scan_index >= len(COUNTERS)
        m.d.comb += [
            Assume(~unused | (self.count == 0)),
            Assert(~bus.b.valid | (bus.b.payload.resp == write_error)),
            Assert(~bus.r.valid | (bus.r.payload.resp == read_error)),
            Assert(~(bus.r.valid & hole) | (bus.r.payload.data == 0)),
            Assert(~self.read_pending | (word == asked)),
            Assert(~(self.read_pending & bus.r.valid)),
        ]
        return m


class UnusedCounters(Counters):
    """The counters; an index, chosen freely from `first` on, always reads 0."""

    first = len(COUNTERS)

    def elaborate(self, platform: object) -> Module:
        m, found = with_locals(super().elaborate, platform)
        index = Signal(range(self.SCAN_PERIOD), name="unused_index")
        port = self.upper.read_port(domain="comb")
        extend, scan = found["_extend"], found["elaborate"]
        m.d.comb += [
            index.eq(AnyConst(len(index))),
            Assume(index >= self.first),
            Assert((self.scan_index != index) | (self.value == 0)),
            port.addr.eq(index),
            Assert(Value.cast(port.data) == 0),
            Assert((scan["read_index"] != index) | ((scan["read_low"] == 0) & (Value.cast(extend["read"].data) == 0))),
            Assert((self.scan_index != index) | ((scan["low"] == 0) & (Value.cast(extend["old"]) == 0))),
        ]
        return m


class FewerCounters(UnusedCounters):
    """The last counter is called unused."""

    first = len(COUNTERS) - 1


def test_a_write_burst_has_its_beats_and_one_response(tmp_path: Path) -> None:
    result = prove(FreeBench(CheckedStore(NANO)), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


_STORE_FAULTS = {
    "last before the end": ("last.eq(beats_left == 0)", "last.eq(beats_left == 1)"),
    "data without an address": ("self.w.valid.eq(active & words.o.valid)", "self.w.valid.eq(words.o.valid)"),
    "a beat that is withdrawn": ("eq(active & words.o.valid)", "eq(active & words.o.valid & ~self.unit.halt)"),
    "a response without a burst": ("eq(awaited.o.valid & indices.o.valid)", "eq(indices.o.valid)"),
}  # fmt: skip


@pytest.mark.parametrize("fault", each_night(_STORE_FAULTS))
def test_a_faulty_store_is_refuted(fault: str, tmp_path: Path) -> None:
    faulty = rebased(CheckedStore, planted(StoreUnit, _STORE_FAULTS[fault]))
    assert not prove(FreeBench(faulty(NANO)), tmp_path, depth=2, induction=True).holds


def test_no_valid_after_an_edge_in_reset(tmp_path: Path) -> None:
    result = prove(ResetBench(), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


def test_without_the_reset_a_valid_stays(tmp_path: Path) -> None:
    assert not prove(ResetBench(fault=True), tmp_path, depth=2, induction=True).holds


@pytest.mark.parametrize("errors", [True, False])
def test_holes_and_writes_that_nothing_takes_end_in_an_error_or_in_none_at_all(errors: bool, tmp_path: Path) -> None:
    result = prove(FreeBench(CheckedRegisters(NANO.replace(register_errors=errors))), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


_BANK_FAULTS = {
    "no error on writes": ("r.access is not Access.RO)", "r.access is not None)"),
    "no error on reads": ("word[:COUNTER_INDEX_BITS] >= counters, 1", "word[:COUNTER_INDEX_BITS] > counters, 1"),
    "an address that is decoded in part": ("with m.Switch(word):", "with m.Switch(word[:5]):"),
}  # fmt: skip


@pytest.mark.parametrize("fault", each_night(_BANK_FAULTS))
def test_a_faulty_register_bank_is_refuted(fault: str, tmp_path: Path) -> None:
    faulty = rebased(CheckedRegisters, planted(Registers, _BANK_FAULTS[fault]))
    assert not prove(FreeBench(faulty(NANO)), tmp_path, depth=2, induction=True).holds


def test_an_index_without_a_counter_reads_zero(tmp_path: Path) -> None:
    result = prove(FreeBench(UnusedCounters()), tmp_path, depth=2, induction=True, whole=True)
    assert result.holds, result.log


def test_an_index_with_a_counter_does_not_read_zero(tmp_path: Path) -> None:
    assert not prove(FreeBench(FewerCounters()), tmp_path, depth=2, induction=True, whole=True).holds
