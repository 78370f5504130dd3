"""The contiguous runs of a move, one after the other, in memory and in local memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.down_counter import DownCounter
from intloom.hw.spec.isa import BY_KIND, COUNT_BITS, DRAM_BITS, SCRATCH_BITS, Kind
from intloom.hw.spec.params import HardwareParams


def _width(name: str) -> int:
    return BY_KIND[Kind.LOAD].field(name).width


def word_address_bits(params: HardwareParams) -> int:
    """Width of a memory address that counts words."""
    return params.axi_addr_bits - exact_log2(params.word_bytes)


def offset_bits(params: HardwareParams) -> int:
    """Width of an offset from the memory's base in words: what an instruction can say, and an address can use."""
    return min(DRAM_BITS, word_address_bits(params))


RUN_BITS = _width("n0")

_OFFSETS = ("dram", "dram_s1", "dram_s2")
_FIELDS = ("n0", "n1", "n2", "target", "local", "local_s1", "local_s2")


def move_layout(params: HardwareParams) -> data.StructLayout:
    """A LOAD or STORE without its waits, with the number of its instruction."""
    offsets = dict.fromkeys(_OFFSETS, offset_bits(params))
    return data.StructLayout({**offsets, **{name: _width(name) for name in _FIELDS}, "index": COUNT_BITS})


def memory_run_layout(params: HardwareParams) -> data.StructLayout:
    """A run of `words` words of memory from word `offset` on.

    `joins`: it begins where the run before it in its instruction ended. `last` marks the final one of its instruction.
    """
    return data.StructLayout({"offset": offset_bits(params), "words": RUN_BITS, "joins": 1, "last": 1})


LOCAL_RUN_LAYOUT = data.StructLayout(
    {"target": _width("target"), "addr": SCRATCH_BITS, "words": RUN_BITS, "last": 1, "index": COUNT_BITS}
)
"""The same run in local memory."""


def run_layout(params: HardwareParams) -> data.StructLayout:
    """A run on both sides."""
    return data.StructLayout({"memory": memory_run_layout(params), "local": LOCAL_RUN_LAYOUT})


class RunWalker(wiring.Component):
    """Turns each move into its runs, a run every two cycles, three to a new plane or move.

    The first run is offered `LATENCY` cycles after its move was taken. Local addresses are modulo 2**20. Nothing but a
    state hangs on a run's being taken: the next one is worked out in the cycles that follow.

    Parameters
    ----------
    params
        The accelerator's parameters.
    """

    LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(move_layout(params))),
                "o": Out(stream.Signature(run_layout(params))),
            }
        )
        self._move = Signal(move_layout(params), reset_less=True)
        """Here `dram` and `local` are the addresses of the run."""
        self._plane = Signal(offset_bits(params), reset_less=True)
        self._local_plane = Signal(SCRATCH_BITS, reset_less=True)
        self._runs = DownCounter(_width("n1"), "runs")
        self._planes = DownCounter(_width("n2"), "planes")

    @staticmethod
    def model(move: Mapping[str, int], params: HardwareParams) -> Iterator[dict[str, dict[str, Any]]]:
        """Both sides of every run of a move."""
        end = None
        for plane, row in product(range(move["n2"]), range(move["n1"])):
            offset = move["dram"] + plane * move["dram_s2"] + row * move["dram_s1"]
            addr = move["local"] + plane * move["local_s2"] + row * move["local_s1"]
            offset %= 1 << offset_bits(params)
            shared = {"words": move["n0"], "last": (plane, row) == (move["n2"] - 1, move["n1"] - 1)}
            place = {"addr": addr % (1 << SCRATCH_BITS), "target": move["target"], "index": move["index"]}
            yield {"memory": {"offset": offset, "joins": offset == end, **shared}, "local": {**place, **shared}}
            end = (offset + move["n0"]) % (1 << offset_bits(params))

    def elaborate(self, platform: object) -> Module:
        """Take a move, open a plane, offer a run, step to the next; the next plane's addresses are always at hand."""
        m = Module()
        move = self._move
        self._offer(m, self._watch_joins(m))
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.i.ready.eq(1)
                start = self.i.payload
                m.d.sync += [self._plane.eq(start.dram), self._local_plane.eq(start.local)]
                m.d.sync += [move[name].eq(start[name]) for name, _ in start.shape() if name not in ("dram", "local")]
                self._planes.load(m, start.n2)
                with m.If(self.i.valid):
                    m.next = "OPEN"
            with m.State("OPEN"):
                m.d.sync += [move.dram.eq(self._plane), self._plane.eq(self._plane + move.dram_s2)]
                m.d.sync += [move.local.eq(self._local_plane), self._local_plane.eq(self._local_plane + move.local_s2)]
                self._runs.load(m, move.n1)
                m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "STEP"
                    with m.If(self._runs.last):
                        m.next = "NEXT_PLANE"
                        with m.If(self._planes.last):
                            m.next = "TAKE"
            with m.State("NEXT_PLANE"):
                self._planes.step(m)
                m.next = "OPEN"
            with m.State("STEP"):
                m.d.sync += [move.dram.eq(move.dram + move.dram_s1), move.local.eq(move.local + move.local_s1)]
                self._runs.step(m)
                m.next = "OFFER"
        return m

    def _watch_joins(self, m: Module) -> Signal:
        """Whether the run begins where the one before ended: within a plane, or as a plane's first."""
        move = self._move
        joins, rows_touch, first = Signal(), Signal(), Signal()
        end = Signal.like(self._plane, reset_less=True)
        m.d.sync += [
            rows_touch.eq(move.dram_s1 == move.n0),
            end.eq(move.dram + move.n0),
        ]
        with m.If(self.i.ready):
            m.d.sync += [first.eq(1), joins.eq(0)]
        with m.Elif(self.o.valid):
            m.d.sync += first.eq(0)
        with m.Elif(~first):
            m.d.sync += joins.eq(Mux(self._runs.last, self._plane == end, rows_touch))
        return joins

    def _offer(self, m: Module, joins: Signal) -> None:
        move = self._move
        last = self._runs.last & self._planes.last
        memory, local = self.o.payload.memory, self.o.payload.local
        m.d.comb += [
            memory.offset.eq(move.dram),
            memory.words.eq(move.n0),
            memory.joins.eq(joins),
            memory.last.eq(last),
            local.target.eq(move.target),
            local.addr.eq(move.local),
            local.words.eq(move.n0),
            local.last.eq(last),
            local.index.eq(move.index),
        ]
