"""The local side of a transfer: the address of each word in the scratchpad or the weight memory."""

from collections.abc import Iterator, Mapping

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.dma.runs import local_run_layout, option_layout
from intloom.hw.down_counter import DownCounter
from intloom.hw.spec.isa import COUNT_BITS, SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams


def local_address_layout(params: HardwareParams) -> data.StructLayout:
    """Target memory and address of one word; `last` marks the final word of its instruction, `end` that of its run."""
    address = {"target": 1, "addr": SCRATCH_BITS, "index": COUNT_BITS, "last": 1}
    return data.StructLayout({**address, **({"end": 1} if params.word_code else {}), **option_layout(params)})


def word_address(addr: Value, out_of_range: Value) -> Value:
    """A full port address from a short one and its earlier range check: the upper bits repeat `out_of_range`."""
    return Cat(addr, out_of_range.replicate(SCRATCH_BITS - len(addr)))


class AddressWalker(wiring.Component):
    """Generates the local address of each word of a run, in order.

    Addresses are modulo 2**20.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    i
        Runs in local memory.
    o
        Addresses of words.

    Handshake
    ---------
    Both are streams. `i.ready` depends on `o.ready` in the last word of a run.

    Timing
    ------
    One address per cycle, without a gap between runs. From a run's transfer on `i` to its first address on `o`:
    `LATENCY` = 1 cycle.

    Requirements
    ------------
    A run has at least 1 word.

    Reset and faults
    ----------------
    Reset drops the run in progress. No faults: users of the addresses check their range.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(local_run_layout(params))),
                "o": Out(stream.Signature(local_address_layout(params))),
            }
        )

    @staticmethod
    def model(run: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """Yield the address of each word of a run."""
        for word in range(run["words"]):
            addr = (run["addr"] + word) % (1 << SCRATCH_BITS)
            end = word == run["words"] - 1
            options = {name: run[name] for name in ("coded", "beats", "checked") if name in run}
            options |= {"end": end} if "coded" in run else {}
            yield {"target": run["target"], "addr": addr, "index": run["index"], "last": run["last"] and end, **options}

    def elaborate(self, platform: object) -> Module:
        """A run register, whose `addr` is incremented, and a down counter of its words."""
        m = Module()
        run = Signal(local_run_layout(self._params), reset_less=True)
        words = DownCounter(len(run.words), "words")
        m.d.comb += [
            self.o.payload.target.eq(run.target),
            self.o.payload.addr.eq(run.addr),
            self.o.payload.index.eq(run.index),
            self.o.payload.last.eq(words.last & run.last),
            # Taking the next run with the last word of this one leaves no gap between runs.
            self.i.ready.eq(~self.o.valid | (self.o.ready & words.last)),
        ]
        m.d.comb += [self.o.payload[name].eq(run[name]) for name in option_layout(self._params)]
        if self._params.word_code:
            m.d.comb += self.o.payload.end.eq(words.last)
        with m.If(self.i.ready):
            # Loaded whether valid or not: `o.valid` qualifies the run, which has no reset.
            m.d.sync += [self.o.valid.eq(self.i.valid), run.eq(self.i.payload)]
            words.load(m, self.i.payload.words)
        with m.Elif(self.o.ready):
            m.d.sync += run.addr.eq(run.addr + 1)
            words.step(m)
        return m
