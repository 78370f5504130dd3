"""The wait gate, for runs of any length: no instruction starts before all units it waits for have finished enough."""

from __future__ import annotations

from pathlib import Path

from amaranth.hdl import Assert, Assume, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.control.queue import COUNTS_LAYOUT, WaitGate
from hw.spec.isa import QUEUED_UNITS
from tests.hw.formal.prove import holds_always, model

UNITS = range(len(QUEUED_UNITS))


class GateContract(wiring.Component):
    """A gate whose counts only grow and whose waits change only after `fresh`; `fault` lets the waits change freely."""

    def __init__(self, fault: bool = False) -> None:
        self._fault = fault
        super().__init__({"waits": In(COUNTS_LAYOUT), "counts": In(COUNTS_LAYOUT), "fresh": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = WaitGate()
        started, was_fresh = Signal(), Signal()
        old_waits, old_counts = Signal(COUNTS_LAYOUT), Signal(COUNTS_LAYOUT)
        m.d.comb += [dut.waits.eq(self.waits), dut.counts.eq(self.counts), dut.fresh.eq(self.fresh)]
        m.d.sync += [started.eq(1), was_fresh.eq(self.fresh), old_waits.eq(self.waits), old_counts.eq(self.counts)]
        m.d.comb += Assume(~ResetSignal())
        for unit in UNITS:
            m.d.comb += Assume(~started | (self.counts[unit] >= old_counts[unit]))
            if not self._fault:
                m.d.comb += Assume(~started | was_fresh | (self.waits[unit] == old_waits[unit]))
            m.d.comb += Assert(~dut.met | (self.counts[unit] >= self.waits[unit]))
        return m


def prove(contract: GateContract, folder: Path) -> bool:
    """Whether the gate keeps the contract in runs of any length."""
    ports = [contract.waits.as_value(), contract.counts.as_value(), contract.fresh]
    return holds_always(model(contract, ports, folder), 6, folder)


def test_the_gate_opens_only_when_every_wait_is_met(tmp_path: Path):
    assert prove(GateContract(), tmp_path)


def test_waits_that_change_unannounced_would_slip_through(tmp_path: Path):
    assert not prove(GateContract(fault=True), tmp_path)


class OpeningContract(wiring.Component):
    """A gate whose waits and counts are all met in one cycle is open in the next."""

    def __init__(self) -> None:
        super().__init__({"waits": In(COUNTS_LAYOUT), "counts": In(COUNTS_LAYOUT)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = WaitGate()
        all_met = Signal()
        m.d.comb += [dut.waits.eq(self.waits), dut.counts.eq(self.counts), Assume(~ResetSignal())]
        m.d.sync += all_met.eq(1)
        for unit in UNITS:
            with m.If(self.counts[unit] < self.waits[unit]):
                m.d.sync += all_met.eq(0)
        m.d.comb += Assert(~all_met | dut.met)
        return m


def test_the_gate_opens_when_every_wait_is_met(tmp_path: Path):
    contract = OpeningContract()
    ports = [contract.waits.as_value(), contract.counts.as_value()]
    assert holds_always(model(contract, ports, tmp_path), 6, tmp_path)
