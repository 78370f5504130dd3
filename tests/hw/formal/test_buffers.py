"""Proofs about the stream buffer and the library queue that the units use, as deep as all their states need."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Elaboratable, Module, Signal
from amaranth.lib.fifo import SyncFIFOBuffered

from hw.bus.buffer import StreamBuffer
from tests.hw.formal.order import OrderCheck, assert_stream_holds
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
WIDTH = 1


class BufferBench(Elaboratable):
    """Any traffic through a stream buffer."""

    def __init__(self, capacity: int = 2) -> None:
        self.capacity = capacity

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.buffer = buffer = StreamBuffer(WIDTH)
        m.d.comb += [buffer.i.valid.eq(AnySeq(1)), buffer.i.payload.eq(AnySeq(WIDTH)), buffer.o.ready.eq(AnySeq(1))]
        order = OrderCheck(WIDTH, self.capacity)
        enter, leave = buffer.i.valid & buffer.i.ready, buffer.o.valid & buffer.o.ready
        order.attach(m, enter, buffer.i.payload, leave, buffer.o.payload)
        assert_stream_holds(m, buffer.o.valid, buffer.o.ready, buffer.o.payload)
        m.d.comb += [
            Assert(buffer.o.valid == (order.inside != 0)),
            # Full rate: with one word inside there is always room for another.
            Assert(buffer.i.ready == (order.inside < 2)),
        ]
        return m


class QueueBench(Elaboratable):
    """Any traffic through a library queue."""

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = SyncFIFOBuffered(width=WIDTH, depth=self.depth)
        m.d.comb += [queue.w_en.eq(AnySeq(1)), queue.w_data.eq(AnySeq(WIDTH)), queue.r_en.eq(AnySeq(1))]
        order = OrderCheck(WIDTH, self.depth)
        enter, leave = queue.w_en & queue.w_rdy, queue.r_en & queue.r_rdy
        order.attach(m, enter, queue.w_data, leave, queue.r_data)
        assert_stream_holds(m, queue.r_rdy, queue.r_en, queue.r_data)
        patience = Signal(range(4))
        with m.If(queue.r_rdy | (order.inside == 0)):
            m.d.sync += patience.eq(0)
        with m.Else():
            m.d.sync += patience.eq(patience + 1)
        m.d.comb += [Assert(queue.level == order.inside), Assert(patience < 2)]
        return m


def test_the_stream_buffer_keeps_order_and_rate(tmp_path: Path) -> None:
    verdict = prove(BufferBench(), tmp_path, depth=14)
    assert verdict.holds, verdict.log


def test_the_proof_finds_a_buffer_that_holds_more_than_it_may(tmp_path: Path) -> None:
    assert not prove(BufferBench(capacity=1), tmp_path, depth=14).holds


def test_the_queue_keeps_order(tmp_path: Path) -> None:
    verdict = prove(QueueBench(2), tmp_path, depth=8)
    assert verdict.holds, verdict.log
