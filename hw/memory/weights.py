"""The weight memory: a ring of words, written by the load unit and read by the MAC unit."""

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

_WAY = WEIGHT_LATENCY - 3
"""Registers on the way to the memory: it has one of its own, and two stand behind it."""


class WeightMemory(wiring.Component):
    """`weight_words` words; addresses wrap at the end, neither port is ever refused.

    Read data comes `WEIGHT_LATENCY` cycles after `valid`, for one cycle. A read sees writes of earlier cycles; what it
    gives of a word that is written in the same cycle is undefined.

    Parameters
    ----------
    params
        The accelerator's parameters.
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
        """The word that each cycle's read gives, or None where there is none or it is undefined.

        A step has the address that is read and the address and word that are written, or None.
        """
        words = dict.fromkeys(range(params.weight_words), 0)
        for read, write in steps:
            at = None if write is None else write[0] % params.weight_words
            place = None if read is None else read % params.weight_words
            yield None if place is None or place == at else words[place]
            if write is not None and at is not None:
                words[at] = write[1]

    def elaborate(self, platform: object) -> Module:
        """A simple dual-port memory with registers on the way to it, one behind it, one at the end of the way out."""
        m = Module()
        words = self._params.weight_words
        bits = exact_log2(words)
        shape = unsigned(8 * self._params.word_bytes)
        m.submodules.memory = memory = Memory(shape=shape, depth=words, init=[], attrs=NO_COLLISIONS)
        write = memory.write_port()
        read = memory.read_port(domain="sync")
        found, out = Signal.like(self.read.data, reset_less=True), output_register(m, self.read.data, "out")
        m.d.sync += [found.eq(read.data), out.eq(found)]
        m.d.comb += [
            write.en.eq(pipeline_stages(m, "write_valid", self.write.valid, _WAY, reset_less=False)),
            write.addr.eq(pipeline_stages(m, "write_address", self.write.addr[:bits], _WAY, reset_less=True)),
            write.data.eq(pipeline_stages(m, "write_data", self.write.data, _WAY, reset_less=True)),
            read.en.eq(pipeline_stages(m, "read_valid", self.read.valid, _WAY, reset_less=False)),
            read.addr.eq(pipeline_stages(m, "read_address", self.read.addr[:bits], _WAY, reset_less=True)),
        ]
        return m
