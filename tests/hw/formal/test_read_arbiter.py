"""The arbiter of the AXI read channels, for all requests and for ever: priority, credits, routing, bounded wait."""

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.control.arbiter import ReadArbiter
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.spec.params import preset
from tests.hw.formal.order import FreeBench, OrderCheck, assert_stream_holds, second_item
from tests.hw.formal.planted import each_night, planted, rebased
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
PARAMS = preset("nano").replace(axi_outstanding=4)
ADDRESS_BITS = 3
"""Bits of an address that are followed: the arbiter never looks at it."""


class CheckedArbiter(ReadArbiter):
    """The arbiter with its rules, and what induction has to know of its FIFO and its skid buffer."""

    def _arbitrate(self, m: Module, owners: CreditFifo, requests: SkidBuffer) -> None:
        super()._arbitrate(m, owners, requests)
        self.requests = requests

    def _route_data(self, m: Module, owners: CreditFifo) -> None:
        super()._route_data(m, owners)
        fetch, load = (Signal(name=f"{name}_granted") for name in ("fetch", "load"))
        ends, granted, sent = Signal(), Signal(), Signal()
        m.d.comb += [
            fetch.eq(self.fetch.valid & self.fetch.ready),
            load.eq(self.load.valid & self.load.ready),
            granted.eq(fetch | load),
            sent.eq(self.ar.valid & self.ar.ready),
            ends.eq(self.r.valid & self.r.ready & self.r.payload.last),
            # Fixed priority, and at most one grant.
            Assert(~(self.load.ready & self.fetch.valid)),
        ]
        self._follow_addresses(m, granted, fetch, sent)
        in_flight = self._follow_data(m, owners, granted, fetch, ends)
        self._wait(m, load, sent, ends, in_flight)

    def _follow_addresses(self, m: Module, granted: Value, fetch: Value, sent: Value) -> None:
        """Addresses on AR are those of the granted bursts, in order, and hold until ready."""
        low = self.ar.payload.addr[len(self.ar.payload.addr) - len(self.load.payload.addr) :][:ADDRESS_BITS]
        chosen = Mux(fetch, self.fetch.payload.addr, self.load.payload.addr)[:ADDRESS_BITS]
        addresses = OrderCheck(ADDRESS_BITS, SkidBuffer.DEPTH)
        m.submodules.addresses = order = Module()
        addresses.attach(order, granted, chosen, sent, low)
        assert_stream_holds(m, self.ar.valid, self.ar.ready, self.ar.payload)
        spare, room = second_item(m, self.requests).addr[:ADDRESS_BITS], self.requests.i.ready
        m.d.comb += [
            Assert(self.ar.valid == (addresses.inside != 0)),
            Assert(room == (addresses.inside != SkidBuffer.DEPTH)),
            Assert(~addresses.watching | (addresses.ahead != 0) | (low == addresses.chosen)),
            Assert(~addresses.watching | (addresses.ahead == 0) | (spare == addresses.chosen)),
        ]
        self.on_ar = addresses.inside

    def _follow_data(self, m: Module, owners: CreditFifo, granted: Value, fetch: Value, ends: Value) -> Signal:
        """Every beat goes to the master whose burst is the oldest; at most `axi_outstanding` bursts are in flight."""
        bursts = OrderCheck(1, PARAMS.axi_outstanding)
        m.submodules.bursts = order = Module()
        bursts.attach(order, granted, fetch, ends, owners.o.payload)
        turn, to_fetch, to_load = Signal(), self.fetch_r, self.load_r
        port = owners.memory.read_port(domain="comb")
        m.d.comb += [
            turn.eq(bursts.watching & (bursts.ahead == 0)),
            Assert(~turn | (to_fetch.valid == (self.r.valid & bursts.chosen))),
            Assert(~turn | (to_load.valid == (self.r.valid & ~bursts.chosen))),
            Assert(~turn | (self.r.ready == Mux(bursts.chosen, to_fetch.ready, to_load.ready))),
            Assert(Value.cast(to_fetch.payload) == Value.cast(self.r.payload)),
            Assert(Value.cast(to_load.payload) == Value.cast(self.r.payload)),
            Assert((bursts.inside != 0) | ~(to_fetch.valid | to_load.valid | self.r.ready)),
            Assert(bursts.inside <= PARAMS.axi_outstanding),
            port.addr.eq(owners.head + bursts.ahead),
            Assert(~bursts.watching | (port.data == bursts.chosen)),
            Assert((owners.tail - owners.head)[: len(owners.head)] == bursts.inside[: len(owners.head)]),
            Assert((owners.level == bursts.inside) & (owners.credits + bursts.inside == PARAMS.axi_outstanding)),
            Assert((owners.o.valid == (bursts.inside != 0)) & (owners.credit_available == (owners.credits != 0))),
            Assert(self.on_ar <= bursts.inside),
            # Data comes only of bursts whose address was sent.
            Assume(~self.r.valid | (bursts.inside > self.on_ar)),
        ]
        return bursts.inside

    def _wait(self, m: Module, load: Value, sent: Value, ends: Value, in_flight: Signal) -> None:
        """For benches of the wait."""


def bench(component: type[ReadArbiter] = CheckedArbiter) -> FreeBench:
    """Any traffic of masters and slave that keep the rules of a stream."""
    return FreeBench(component(PARAMS), streams=("fetch", "load", "r"))


FETCHES = 2
"""Bursts that fetch requests while a load waits: it has space for two blocks, which units empty as they take work."""
ADDRESS_CYCLES, DATA_CYCLES = 1, 2
"""Cycles in which the slave accepts no address although one is valid; cycles from one last beat to the next."""
BOUND = 5
"""Cycles that a load then waits at most."""


class WaitingArbiter(CheckedArbiter):
    """The arbiter with an environment that makes progress; the load's wait is counted."""

    fetches, bound = FETCHES, BOUND

    def _wait(self, m: Module, load: Value, sent: Value, ends: Value, in_flight: Signal) -> None:
        waited, fetched = Signal(range(self.bound + 3)), Signal(range(self.fetches + 2))
        stalled, quiet = Signal(range(ADDRESS_CYCLES + 2)), Signal(range(DATA_CYCLES + 2))
        waits = self.load.valid & ~load
        on_bus = in_flight != self.on_ar
        m.d.sync += [
            waited.eq(Mux(waits, waited + (waited <= self.bound), 0)),
            fetched.eq(Mux(waits, fetched + (self.fetch.valid & self.fetch.ready), 0)),
            stalled.eq(Mux(self.ar.valid & ~self.ar.ready, stalled + 1, 0)),
            quiet.eq(Mux(on_bus & ~ends, quiet + 1, 0)),
        ]
        m.d.comb += [
            Assume((stalled != ADDRESS_CYCLES) | ~self.ar.valid | self.ar.ready),
            Assume((quiet != DATA_CYCLES - 1) | ~on_bus | ends),
            Assert((stalled <= ADDRESS_CYCLES) & (quiet < DATA_CYCLES)),
            Assert(waited <= self.bound),
        ]
        if self.fetches <= FETCHES:
            m.d.comb += Assume(~self.fetch.valid | (fetched != self.fetches))
            m.d.comb += Assert(fetched <= self.fetches)


def test_grants_addresses_and_data_keep_their_order(tmp_path: Path) -> None:
    result = prove(bench(), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


def test_a_load_waits_for_a_bounded_time(tmp_path: Path) -> None:
    result = prove(bench(WaitingArbiter), tmp_path, depth=BOUND + 3, induction=True)
    assert result.holds, result.log


class _ShorterWait(WaitingArbiter):
    bound = BOUND - 1


class _EndlessFetch(WaitingArbiter):
    fetches = FETCHES + 1


@pytest.mark.parametrize("component", [_ShorterWait, _EndlessFetch])
def test_a_shorter_wait_and_a_fetch_without_pause_are_refuted(component: type[ReadArbiter], tmp_path: Path) -> None:
    assert not prove(bench(component), tmp_path, depth=24).holds


_FAULTS = {
    "both granted": (("self.load.ready.eq(grant & ~self.fetch.valid)", "self.load.ready.eq(grant)"),),
    "no credit": (
        ("owners.credit_available & requests.i.ready", "requests.i.ready"),
        ("(self.fetch.valid | self.load.valid) & owners.credit_available", "self.fetch.valid | self.load.valid"),
    ),
    "another owner": (("owners.word.eq(self.fetch.valid)", "owners.word.eq(~self.load.valid)"),),
    "an address that changes": (("burst = requests.o.payload", "burst = self.load.payload"),),
}  # fmt: skip


@pytest.mark.parametrize("fault", each_night(_FAULTS))
def test_a_faulty_arbiter_is_refuted(fault: str, tmp_path: Path) -> None:
    faulty = rebased(CheckedArbiter, planted(ReadArbiter, *_FAULTS[fault]))
    assert not prove(bench(faulty), tmp_path, depth=12).holds
