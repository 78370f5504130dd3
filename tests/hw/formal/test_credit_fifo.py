"""Unbounded proofs about the credit FIFO, and checks that they find a fault."""

from pathlib import Path

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Elaboratable, Module, Mux, Signal

from intloom.hw.credit_fifo import CreditFifo
from tests.hw.formal.order import OrderCheck, assert_stream_holds
from tests.hw.formal.prover import prove
from tests.hw.test_credit_fifo import PrefetchingFifo

pytestmark = pytest.mark.slow
WIDTH = 3


class QueueBench(Elaboratable):
    """Any traffic that keeps the rules; `greedy` breaks one: it takes a credit although none is available."""

    def __init__(self, depth: int, form: type[CreditFifo] = CreditFifo, greedy: bool = False) -> None:
        self.depth = depth
        self.form = form
        self.greedy = greedy

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = self.form(WIDTH, self.depth)
        m.submodules.order = order_module = Module()
        order = OrderCheck(WIDTH, self.depth)
        in_flight = Signal(range(2 * self.depth))
        m.d.comb += [
            queue.take_credit.eq(AnySeq(1)),
            queue.push.eq(AnySeq(1)),
            queue.word.eq(AnySeq(WIDTH)),
            queue.o.ready.eq(AnySeq(1)),
            Assume(~queue.push | (in_flight != 0)),
        ]
        if self.greedy:
            m.d.comb += Assume(in_flight < self.depth + 1)
        else:
            m.d.comb += Assume(~queue.take_credit | queue.credit_available)
        m.d.sync += in_flight.eq(in_flight + queue.take_credit - queue.push)
        leave = queue.o.valid & queue.o.ready
        order.attach(order_module, queue.push, queue.word, leave, queue.o.payload)
        assert_stream_holds(m, queue.o.valid, queue.o.ready, queue.o.payload)
        held = Signal(range(4 * self.depth))
        m.d.comb += [
            held.eq(order.inside + in_flight),
            # No overflow, and every credit comes back.
            Assert(held <= self.depth),
            Assert(queue.credit_available == (held < self.depth)),
            Assert(queue.o.valid == (order.inside != 0)),
        ]
        self._invariants(m, queue, order, held)
        return m

    def _invariants(self, m: Module, queue: CreditFifo, order: OrderCheck, held: Signal) -> None:
        """What induction has to know: where words lie."""
        port = queue.memory.read_port(domain="comb")
        # A prefetched word, which is on offer, is not in the memory.
        prefetched = (order.inside != 0) & (self.form is PrefetchingFifo)
        on_offer = prefetched & (order.ahead == 0)
        m.d.comb += [
            port.addr.eq(queue.head + order.ahead - prefetched),
            Assert(~order.watching | (Mux(on_offer, queue.o.payload, port.data) == order.chosen)),
            Assert((queue.tail - queue.head)[: len(queue.head)] == (order.inside - prefetched)[: len(queue.head)]),
            Assert(queue.level == order.inside),
            Assert(queue.credits + held == self.depth),
        ]


@pytest.mark.parametrize("form", [CreditFifo, PrefetchingFifo])
@pytest.mark.parametrize("depth", [4, 8, 16])
def test_no_word_is_lost_reordered_or_overwritten(depth: int, form: type[CreditFifo], tmp_path: Path) -> None:
    result = prove(QueueBench(depth, form), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


@pytest.mark.parametrize("form", [CreditFifo, PrefetchingFifo])
def test_the_proof_finds_a_sender_that_takes_too_many_credits(form: type[CreditFifo], tmp_path: Path) -> None:
    assert not prove(QueueBench(4, form, greedy=True), tmp_path, depth=12).holds
