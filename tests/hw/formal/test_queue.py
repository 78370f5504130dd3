"""Proofs about the library queue that the units use, from reset until it has gone round its memory twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Elaboratable, Module, Signal
from amaranth.lib.fifo import SyncFIFOBuffered

from tests.hw.formal.order import OrderCheck, assert_stream_holds
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
WIDTH = 1


class QueueBench(Elaboratable):
    """Any traffic through a library queue; with a `capacity` of its own it is held to another contract."""

    def __init__(self, depth: int, capacity: int | None = None) -> None:
        self.depth = depth
        self.capacity = depth if capacity is None else capacity

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = SyncFIFOBuffered(width=WIDTH, depth=self.depth)
        m.d.comb += [queue.w_en.eq(AnySeq(1)), queue.w_data.eq(AnySeq(WIDTH)), queue.r_en.eq(AnySeq(1))]
        order = OrderCheck(WIDTH, self.capacity)
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


def test_the_proof_finds_a_queue_that_holds_more_than_it_may(tmp_path: Path) -> None:
    assert not prove(QueueBench(2, capacity=1), tmp_path, depth=8).holds


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_the_queue_keeps_order(depth: int, tmp_path: Path) -> None:
    result = prove(QueueBench(depth), tmp_path, depth=2 * depth + 4)
    assert result.holds, result.log
