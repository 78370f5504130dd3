"""The weight memory: a circular buffer, written by the load unit and read by the MAC unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In
from amaranth.utils import exact_log2

from intloom.hw.pipeline import output_register, pipeline_stages
from intloom.hw.ports import WEIGHT_LATENCY, WeightReadPort, WeightWritePort
from intloom.hw.spec.params import HardwareParams
from intloom.hw.yosys_attributes import NO_COLLISIONS

_INPUT_STAGES = WEIGHT_LATENCY - 3
"""Input registers: the block RAM is one stage of `WEIGHT_LATENCY`, and two registers follow it."""


class WeightMemory(wiring.Component):
    """A simple dual-port memory of `weight_words` words whose addresses wrap at the end.

    Pipeline registers before and after the block RAM allow it to be placed far from both units.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    read
        Read port of the MAC unit.
    write
        Write port of the load unit.

    Handshake
    ---------
    Both ports are always ready. Read data is valid for 1 cycle.

    Timing
    ------
    One read and one write per cycle. From `read.valid` to `read.data`: `WEIGHT_LATENCY` = 6 cycles. A read that is
    requested at least 1 cycle after a write returns the written data.

    Requirements
    ------------
    No read and write of one word in the same cycle: the read data is undefined.

    Reset and faults
    ----------------
    Reset clears the valid bits in the pipeline; contents and data registers have no reset. No faults: addresses wrap.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {"read": In(WeightReadPort(params.word_bytes)), "write": In(WeightWritePort(params.word_bytes))}
        )

    @staticmethod
    def model(
        params: HardwareParams, steps: Iterable[tuple[int | None, tuple[int, int] | None]]
    ) -> Iterator[int | None]:
        """Yield the word that each cycle's read returns, or None if there is no read or its data is undefined.

        A step has the read address or None, and the write address and word or None.
        """
        words = dict.fromkeys(range(params.weight_words), 0)
        for read, write in steps:
            write_at = None if write is None else write[0] % params.weight_words
            read_at = None if read is None else read % params.weight_words
            yield None if read_at is None or read_at == write_at else words[read_at]
            if write is not None and write_at is not None:
                words[write_at] = write[1]

    def elaborate(self, platform: object) -> Module:
        """A simple dual-port memory with input stages, a register at its output, and one at the port."""
        m = Module()
        words = self._params.weight_words
        bits = exact_log2(words)
        shape = unsigned(8 * self._params.word_bytes)
        m.submodules.memory = memory = Memory(shape=shape, depth=words, init=[], attrs=NO_COLLISIONS)
        write = memory.write_port()
        read = memory.read_port(domain="sync")
        # The block RAM absorbs the first register as its own output register. The second one ends the route to the MAC
        # array.
        block_register, out = Signal.like(self.read.data, reset_less=True), output_register(m, self.read.data, "out")
        m.d.sync += [block_register.eq(read.data), out.eq(block_register)]
        m.d.comb += [
            write.en.eq(pipeline_stages(m, "write_valid", self.write.valid, _INPUT_STAGES, reset_less=False)),
            write.addr.eq(pipeline_stages(m, "write_address", self.write.addr[:bits], _INPUT_STAGES, reset_less=True)),
            write.data.eq(pipeline_stages(m, "write_data", self.write.data, _INPUT_STAGES, reset_less=True)),
            read.en.eq(pipeline_stages(m, "read_valid", self.read.valid, _INPUT_STAGES, reset_less=False)),
            read.addr.eq(pipeline_stages(m, "read_address", self.read.addr[:bits], _INPUT_STAGES, reset_less=True)),
        ]
        return m
