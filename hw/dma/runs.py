"""Decomposes a transfer into contiguous runs, in memory and in local memory."""

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
    """Width of a word offset from the memory base: limited by the instruction field and by the address."""
    return min(DRAM_BITS, word_address_bits(params))


RUN_BITS = _width("n0")
CODED_BITS = _width("coded")

_OFFSETS = ("dram", "dram_s1", "dram_s2")
_FIELDS = ("n0", "n1", "n2", "target", "local", "local_s1", "local_s2")


def move_layout(params: HardwareParams) -> data.StructLayout:
    """A LOAD or STORE without its waits, with the index of the instruction."""
    offsets = dict.fromkeys(_OFFSETS, offset_bits(params))
    fields = {name: _width(name) for name in _FIELDS}
    coded = {"coded": CODED_BITS} if params.word_code else {}
    checked = {"checked": 1} if params.constant_check else {}
    return data.StructLayout({**offsets, **fields, **coded, **checked, "index": COUNT_BITS})


def memory_run_layout(params: HardwareParams) -> data.StructLayout:
    """A run of `words` words of memory from word `offset` on.

    `contiguous`: it starts where the previous run of its instruction ended. `last` marks the final run of its
    instruction.
    """
    return data.StructLayout({"offset": offset_bits(params), "words": RUN_BITS, "contiguous": 1, "last": 1})


def option_layout(params: HardwareParams) -> dict[str, int]:
    """What a run has by the parameters: whether it is coded, and its words in memory; whether its load has a CRC."""
    coded = {"coded": 1, "beats": CODED_BITS} if params.word_code else {}
    return coded | ({"checked": 1} if params.constant_check else {})


def local_run_layout(params: HardwareParams) -> data.StructLayout:
    """The same run in local memory."""
    run = {"target": _width("target"), "addr": SCRATCH_BITS, "words": RUN_BITS, "last": 1, "index": COUNT_BITS}
    return data.StructLayout({**run, **option_layout(params)})


def run_layout(params: HardwareParams) -> data.StructLayout:
    """A run on both sides."""
    return data.StructLayout({"memory": memory_run_layout(params), "local": local_run_layout(params)})


class _State:
    """Registers of the walker: the transfer, the next plane's addresses, and the loop counters."""

    def __init__(self, params: HardwareParams) -> None:
        self.move = Signal(move_layout(params), reset_less=True)
        """The transfer; its `dram` and `local` are the addresses of the current run."""
        self.plane = Signal(offset_bits(params), reset_less=True)
        self.local_plane = Signal(SCRATCH_BITS, reset_less=True)
        self.memory_run = Signal(RUN_BITS, reset_less=True) if params.word_code else self.move.n0
        """Words of a run in memory."""
        self.coded = Signal(reset_less=True)
        self.runs = DownCounter(_width("n1"), "runs")
        self.planes = DownCounter(_width("n2"), "planes")


class RunWalker(wiring.Component):
    """Decomposes a 3-D strided transfer into runs of contiguous words.

    Two nested loops over planes and rows; each row is a run. Local addresses are modulo 2**20.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    i
        Transfers.
    o
        Runs, on both sides.

    Handshake
    ---------
    Both are streams. `o.ready` drives only the state: the next run is computed after the current one was taken, so no
    address adder is behind a handshake.

    Timing
    ------
    From a transfer's acceptance on `i` to its first run on `o`: `LATENCY` = 2 cycles. From one run's transfer on `o` to
    the next run: 2 cycles within a plane, 3 to the next plane or instruction.

    Requirements
    ------------
    All counts are at least 1.

    Reset and faults
    ----------------
    Reset drops the transfer in progress. No faults.
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

    @staticmethod
    def model(move: Mapping[str, int], params: HardwareParams) -> Iterator[dict[str, dict[str, Any]]]:
        """Yield both sides of each run of a transfer."""
        end = None
        for plane, row in product(range(move["n2"]), range(move["n1"])):
            offset = move["dram"] + plane * move["dram_s2"] + row * move["dram_s1"]
            addr = move["local"] + plane * move["local_s2"] + row * move["local_s1"]
            offset %= 1 << offset_bits(params)
            last = (plane, row) == (move["n2"] - 1, move["n1"] - 1)
            local = {"addr": addr % (1 << SCRATCH_BITS), "target": move["target"], "index": move["index"]}
            words = move.get("coded") or move["n0"]
            if params.word_code:
                local |= {"coded": move["coded"] > 0, "beats": move["coded"]}
            if params.constant_check:
                local["checked"] = move.get("checked", 0)
            yield {
                "memory": {"offset": offset, "contiguous": offset == end, "words": words, "last": last},
                "local": {**local, "words": move["n0"], "last": last},
            }
            end = (offset + words) % (1 << offset_bits(params))

    def elaborate(self, platform: object) -> Module:
        """Take a transfer, start a plane, offer a run, step to the next; the next plane's addresses are precomputed."""
        m = Module()
        state = _State(self._params)
        move = state.move
        self._offer(m, state, self._find_contiguous(m, state))
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.i.ready.eq(1)
                start = self.i.payload
                m.d.sync += [state.plane.eq(start.dram), state.local_plane.eq(start.local)]
                m.d.sync += [move[name].eq(start[name]) for name, _ in start.shape() if name not in ("dram", "local")]
                state.planes.load(m, start.n2)
                with m.If(self.i.valid):
                    m.next = "START_PLANE"
            with m.State("START_PLANE"):
                # The next plane's start is computed one plane ahead: the comparison with this plane's end has cycles to
                # spare.
                m.d.sync += [move.dram.eq(state.plane), state.plane.eq(state.plane + move.dram_s2)]
                m.d.sync += [move.local.eq(state.local_plane), state.local_plane.eq(state.local_plane + move.local_s2)]
                state.runs.load(m, move.n1)
                if self._params.word_code:
                    coded = move.coded.any()
                    m.d.sync += [state.coded.eq(coded), state.memory_run.eq(Mux(coded, move.coded, move.n0))]
                m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "STEP"
                    with m.If(state.runs.last):
                        m.next = "NEXT_PLANE"
                        with m.If(state.planes.last):
                            m.next = "TAKE"
            with m.State("NEXT_PLANE"):
                state.planes.step(m)
                m.next = "START_PLANE"
            with m.State("STEP"):
                m.d.sync += [move.dram.eq(move.dram + move.dram_s1), move.local.eq(move.local + move.local_s1)]
                state.runs.step(m)
                m.next = "OFFER"
        return m

    def _find_contiguous(self, m: Module, state: _State) -> Signal:
        """Whether the run starts where the previous one ended, within a plane or across planes."""
        move = state.move
        contiguous, rows_contiguous, first = Signal(), Signal(), Signal()
        end = Signal.like(state.plane, reset_less=True)
        m.d.sync += [
            # Within a plane the stride alone decides, long before the next row's address is computed.
            rows_contiguous.eq(move.dram_s1 == state.memory_run),
            end.eq(move.dram + state.memory_run),
        ]
        with m.If(self.i.ready):
            m.d.sync += [first.eq(1), contiguous.eq(0)]
        with m.Elif(self.o.valid):
            m.d.sync += first.eq(0)
        with m.Elif(~first):
            m.d.sync += contiguous.eq(Mux(state.runs.last, state.plane == end, rows_contiguous))
        return contiguous

    def _offer(self, m: Module, state: _State, contiguous: Signal) -> None:
        move = state.move
        last = state.runs.last & state.planes.last
        memory, local = self.o.payload.memory, self.o.payload.local
        m.d.comb += [
            memory.offset.eq(move.dram),
            memory.words.eq(state.memory_run),
            memory.contiguous.eq(contiguous),
            memory.last.eq(last),
            local.target.eq(move.target),
            local.addr.eq(move.local),
            local.words.eq(move.n0),
            local.last.eq(last),
            local.index.eq(move.index),
        ]
        if self._params.word_code:
            m.d.comb += [local.coded.eq(state.coded), local.beats.eq(move.coded)]
        if self._params.constant_check:
            m.d.comb += local.checked.eq(move.checked)
