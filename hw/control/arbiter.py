"""The read channel, shared by instruction fetch and load unit."""

from __future__ import annotations

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
    """Puts two masters' bursts on one AR channel and gives each its own data.

    Fetch goes first: it asks only for what its queue has room for, so it takes no more than it needs. At most
    `axi_outstanding` bursts are under way. AXI returns them in order, since all carry the same identifier.
    A burst stands on AR `LATENCY` cycles after it was taken, or when those before it have gone.

    Parameters
    ----------
    params
        The accelerator's parameters.
    """

    LATENCY = SkidBuffer.LATENCY

    @staticmethod
    def model(
        outstanding: int, steps: Iterable[tuple[Any, Any, bool, bool]]
    ) -> Iterator[tuple[tuple[bool, bool], Any, str | None]]:
        """What every cycle shows: whether each master's burst is taken, the burst on AR, or None, and whose data comes.

        A step has the burst that each master offers, or None, whether AR is ready, and whether a burst's last beat is
        taken.
        """
        owners: deque[str] = deque()
        waiting: deque[Any] = deque()
        for fetch, load, ready, ends in steps:
            room = len(owners) < outstanding and len(waiting) < SkidBuffer.DEPTH
            takes = (room, room and fetch is None)
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
        read = stream.Signature(read_layout(params.axi_data_bits))
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
        """A queue remembers whose burst is whose."""
        m = Module()
        m.submodules.owners = owners = CreditFifo(1, self._params.axi_outstanding)
        m.submodules.requests = requests = SkidBuffer(burst_layout(self._params))
        asked = requests.o.payload
        m.d.comb += [
            *drive_address(self.ar.payload, asked.addr, asked.beats_less_one, self._params.word_bytes),
            self.ar.valid.eq(requests.o.valid),
            requests.o.ready.eq(self.ar.ready),
        ]
        self._request(m, owners, requests)
        self._answer(m, owners)
        return m

    def _request(self, m: Module, owners: CreditFifo, requests: SkidBuffer) -> None:
        may = owners.credit_available & requests.i.ready
        m.d.comb += [
            self.fetch.ready.eq(may),
            self.load.ready.eq(may & ~self.fetch.valid),
            requests.i.valid.eq((self.fetch.valid | self.load.valid) & owners.credit_available),
            requests.i.payload.eq(self.load.payload),
            owners.word.eq(self.fetch.valid),
            owners.push.eq(requests.i.valid & requests.i.ready),
            owners.take_credit.eq(owners.push),
        ]
        with m.If(self.fetch.valid):
            m.d.comb += requests.i.payload.eq(self.fetch.payload)

    def _answer(self, m: Module, owners: CreditFifo) -> None:
        """Both masters have a place for what comes, so nothing stands between."""
        taken = Signal()
        m.d.comb += [
            self.fetch_r.payload.eq(self.r.payload),
            self.load_r.payload.eq(self.r.payload),
            self.fetch_r.valid.eq(self.r.valid & owners.o.valid & owners.o.payload),
            self.load_r.valid.eq(self.r.valid & owners.o.valid & ~owners.o.payload),
            self.r.ready.eq(owners.o.valid & Mux(owners.o.payload, self.fetch_r.ready, self.load_r.ready)),
            taken.eq(self.r.valid & self.r.ready),
            owners.o.ready.eq(taken & self.r.payload.last),
        ]
