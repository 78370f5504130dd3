"""Proofs about the stream buffer, for all time: nothing lost, nothing made up, order kept, payload held until taken."""

from pathlib import Path

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Elaboratable, Module

from intloom.hw.bus.skid_buffer import SkidBuffer
from tests.hw.formal.order import OrderCheck, assert_stream_holds, second_item
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
# The buffer never looks at its payload, so what holds for two bits holds for any width.
WIDTH = 2
ENTRIES = 2


class BufferBench(Elaboratable):
    """Any traffic through a buffer; with a `capacity` of its own it is held to another contract."""

    def __init__(self, capacity: int = ENTRIES) -> None:
        self.capacity = capacity

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.buffer = buffer = SkidBuffer(WIDTH)
        m.d.comb += [buffer.i.valid.eq(AnySeq(1)), buffer.i.payload.eq(AnySeq(WIDTH)), buffer.o.ready.eq(AnySeq(1))]
        enter, leave = buffer.i.valid & buffer.i.ready, buffer.o.valid & buffer.o.ready
        order = OrderCheck(WIDTH, self.capacity)
        order.attach(m, enter, buffer.i.payload, leave, buffer.o.payload)
        assert_stream_holds(m, buffer.o.valid, buffer.o.ready, buffer.o.payload)
        m.d.comb += [
            Assert(buffer.o.valid == (order.inside != 0)),
            Assert(buffer.i.ready == (order.inside != ENTRIES)),
            # What induction has to know: where the word lies.
            Assert(~order.watching | (order.ahead != 0) | (buffer.o.payload == order.chosen)),
            Assert(~order.watching | (order.ahead == 0) | (second_item(m, buffer) == order.chosen)),
        ]
        return m


def test_the_buffer_is_a_queue_of_two(tmp_path: Path) -> None:
    result = prove(BufferBench(), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


def test_another_contract_is_refuted(tmp_path: Path) -> None:
    assert not prove(BufferBench(capacity=1), tmp_path, depth=4).holds
