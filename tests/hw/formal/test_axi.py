"""Proofs of AXI rules about the components at the ports, for all inputs and for ever.

A3.2.1: what is offered stays offered, unchanged, until it is taken. A3.3.1: a response follows its request, once.
"""

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Elaboratable, Module, Signal

from intloom.hw.control.fetch import Fetch
from intloom.hw.control.registers import Registers
from intloom.hw.dma.load import LoadUnit
from intloom.hw.spec.params import preset
from tests.hw.formal.order import assert_stream_holds, free_inputs
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
NANO = preset("nano")


class BurstBench(Elaboratable):
    """Fetch and load under any inputs; `patient` receivers take offers when they want, others are owed a new one."""

    def __init__(self, *, patient: bool = True) -> None:
        self.patient = patient

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fetch, m.submodules.load = fetch, load = Fetch(NANO), LoadUnit(NANO)
        for component in (fetch, load):
            m.d.comb += [*free_inputs(component)]
            bursts = component.bursts
            assert_stream_holds(m, bursts.valid, bursts.ready if self.patient else 0, bursts.payload)
        return m


class SlaveBench(Elaboratable):
    """The register bank under any inputs; at most `most` reads and writes are without a response."""

    def __init__(self, most: int = 1) -> None:
        self.most = most

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.registers = registers = Registers(NANO)
        m.d.comb += [*free_inputs(registers)]
        bus = registers.bus
        for channel in (bus.r, bus.b):
            assert_stream_holds(m, channel.valid, channel.ready, channel.payload)
        reads, writes = Signal(2), Signal(2)
        m.d.sync += [
            reads.eq(reads + (bus.ar.valid & bus.ar.ready) - (bus.r.valid & bus.r.ready)),
            writes.eq(writes + (bus.aw.valid & bus.aw.ready) - (bus.b.valid & bus.b.ready)),
        ]
        m.d.comb += [
            Assert((reads <= self.most) & (writes <= self.most)),
            # Address and data of a write are taken together; a response is there only for what was taken.
            Assert((bus.aw.valid & bus.aw.ready) == (bus.w.valid & bus.w.ready)),
            Assert(writes == bus.b.valid),
            Assert(reads == registers.read_pending + bus.r.valid),
        ]
        return m


def test_a_burst_on_offer_stays(tmp_path: Path) -> None:
    result = prove(BurstBench(), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


def test_a_burst_that_was_taken_does_not_stay(tmp_path: Path) -> None:
    assert not prove(BurstBench(patient=False), tmp_path, depth=8).holds


def test_the_register_bank_answers_once_and_waits(tmp_path: Path) -> None:
    result = prove(SlaveBench(), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


def test_a_bank_that_takes_no_access_is_refuted(tmp_path: Path) -> None:
    assert not prove(SlaveBench(most=0), tmp_path, depth=4).holds
