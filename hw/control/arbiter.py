"""Arbiter for the AXI read channels, shared by instruction fetch and the load unit."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.axi4 import address_layout, drive_address, read_layout
from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.dma.bursts import burst_layout
from intloom.hw.spec.params import HardwareParams


class ReadArbiter(wiring.Component):
    """Arbitrates two masters' bursts onto one AR channel and routes each burst's data to its master.

    Fixed priority: fetch before load. Fetch requests only what its queue has space for, so it cannot starve load.
    A FIFO records the owner of each outstanding burst, at most `axi_outstanding`. All bursts carry the same identifier,
    so AXI returns their data in order.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    fetch, load
        Bursts requested by the two masters.
    ar, r
        The AXI read channels.
    fetch_r, load_r
        Each master's read data.

    Handshake
    ---------
    All members are streams. `fetch.ready` and `load.ready` depend on registers and, for `load.ready`, on `fetch.valid`.
    `r` is routed without a register: `r.ready` is combinational from the owner's ready.

    Timing
    ------
    One burst per cycle. From a burst's transfer on `fetch` or `load` to its address on `ar`: `LATENCY` = 1 cycle, if
    `ar` is not stalled. From `r` to `fetch_r` or `load_r`: 0 cycles.

    Requirements
    ------------
    The slave returns read data in request order. Each master accepts all data of its bursts.

    Reset and faults
    ----------------
    Reset forgets outstanding bursts, so it is allowed only while the bus is idle. Response codes pass through to the
    masters.
    """

    LATENCY = SkidBuffer.LATENCY

    @staticmethod
    def model(
        outstanding: int, steps: Iterable[tuple[Any, Any, bool, bool]]
    ) -> Iterator[tuple[tuple[bool, bool], Any, str | None]]:
        """Outputs of every cycle: both masters' ready, the burst on AR or None, and the owner of the next data or None.

        A step has the inputs of a cycle: each master's burst or None, `ar.ready`, and whether a last beat transfers.
        """
        owners: deque[str] = deque()
        waiting: deque[Any] = deque()
        for fetch, load, ready, ends in steps:
            space = len(owners) < outstanding and len(waiting) < SkidBuffer.DEPTH
            takes = (space, space and fetch is None)
            yield takes, waiting[0] if waiting else None, owners[0] if owners else None
            if waiting and ready:
                waiting.popleft()
            if ends:
                owners.popleft()
            for owner, burst, taken in zip(("fetch", "load"), (fetch, load), takes, strict=True):
                if taken and burst is not None:
                    owners.append(owner)
                    waiting.append(burst)

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        burst = stream.Signature(burst_layout(params))
        read = stream.Signature(read_layout(params.word_bits))
        super().__init__(
            {
                "fetch": In(burst),
                "load": In(burst),
                "ar": Out(stream.Signature(address_layout(params.axi_addr_bits))),
                "r": In(read),
                "fetch_r": Out(read),
                "load_r": Out(read),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A skid buffer before AR and a FIFO with the owners of outstanding bursts."""
        m = Module()
        m.submodules.owners = owners = CreditFifo(1, self._params.axi_outstanding)
        m.submodules.requests = requests = SkidBuffer(burst_layout(self._params))
        burst = requests.o.payload
        m.d.comb += [
            *drive_address(self.ar.payload, burst.addr, burst.beats_less_one, self._params.word_bytes, self._params),
            self.ar.valid.eq(requests.o.valid),
            requests.o.ready.eq(self.ar.ready),
        ]
        self._arbitrate(m, owners, requests)
        self._route_data(m, owners)
        return m

    def _arbitrate(self, m: Module, owners: CreditFifo, requests: SkidBuffer) -> None:
        grant = owners.credit_available & requests.i.ready
        m.d.comb += [
            self.fetch.ready.eq(grant),
            # Fixed priority cannot starve load: fetch asks only for blocks that its queue has space for, and dispatch
            # empties that queue only as fast as the units take instructions.
            self.load.ready.eq(grant & ~self.fetch.valid),
            # Independent of `requests.i.ready`: VALID must not wait for READY (AXI4 A3.2.1).
            requests.i.valid.eq((self.fetch.valid | self.load.valid) & owners.credit_available),
            requests.i.payload.eq(self.load.payload),
            owners.word.eq(self.fetch.valid),
            owners.push.eq(requests.i.valid & requests.i.ready),
            owners.take_credit.eq(owners.push),
        ]
        with m.If(self.fetch.valid):
            m.d.comb += requests.i.payload.eq(self.fetch.payload)

    def _route_data(self, m: Module, owners: CreditFifo) -> None:
        # No buffer on R: both masters reserved space for their data before they issued the burst.
        fire = Signal()
        m.d.comb += [
            self.fetch_r.payload.eq(self.r.payload),
            self.load_r.payload.eq(self.r.payload),
            self.fetch_r.valid.eq(self.r.valid & owners.o.valid & owners.o.payload),
            self.load_r.valid.eq(self.r.valid & owners.o.valid & ~owners.o.payload),
            # The owner is known in the cycle in which AR becomes valid (both take 1 cycle), so it never delays data.
            self.r.ready.eq(owners.o.valid & Mux(owners.o.payload, self.fetch_r.ready, self.load_r.ready)),
            fire.eq(self.r.valid & self.r.ready),
            owners.o.ready.eq(fire & self.r.payload.last),
        ]
