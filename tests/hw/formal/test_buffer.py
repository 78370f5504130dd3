"""The stream buffer, for runs of any length: nothing lost, nothing made up, order kept, payload held until taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Assert, Assume, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.bus.buffer import StreamBuffer
from tests.hw.formal.prove import holds_always, model

# The buffer never looks at its payload, so what holds for two bits holds for any width.
PAYLOAD_BITS = 2
ENTRIES = 2


class QueueContract(wiring.Component):
    """A two-entry buffer beside a list that says what it must hold; `fault` breaks the list's rule on purpose."""

    def __init__(self, fault: str = "") -> None:
        self._fault = fault
        super().__init__({"valid": In(1), "payload": In(PAYLOAD_BITS), "ready": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = StreamBuffer(PAYLOAD_BITS)
        count = Signal(range(ENTRIES + 1))
        items = Array(Signal(PAYLOAD_BITS, name=f"item{i}") for i in range(ENTRIES))
        pushed, popped = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        m.d.comb += [dut.i.valid.eq(self.valid), dut.i.payload.eq(self.payload), dut.o.ready.eq(self.ready)]
        m.d.sync += count.eq(count + pushed - popped)
        with m.If(popped):
            m.d.sync += [items[0].eq(items[1]), items[1].eq(0)]
        with m.If(pushed if self._fault != "lost" else pushed & (self.payload != 3)):
            m.d.sync += items[(count - popped)[0] if self._fault != "order" else 0].eq(self.payload)
        m.d.comb += [
            Assume(~ResetSignal()),
            Assert(dut.o.valid == (count != 0)),
            Assert(dut.i.ready == (count != ENTRIES)),
            Assert(~dut.o.valid | (dut.o.payload == items[0])),
        ]
        return m


def prove(contract: QueueContract, folder: Path) -> bool:
    """Whether the buffer keeps the contract in runs of any length."""
    return holds_always(model(contract, [contract.valid, contract.payload, contract.ready], folder), 12, folder)


def test_the_buffer_is_a_queue_of_two(tmp_path: Path):
    assert prove(QueueContract(), tmp_path)


@pytest.mark.parametrize("fault", ["lost", "order"])
def test_another_contract_is_refuted(tmp_path: Path, fault: str):
    assert not prove(QueueContract(fault), tmp_path)
