"""The scratchpad: banks interleaved by the low address bits, and fixed priorities among readers and among writers."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import FlippedInterface, In
from amaranth.utils import exact_log2

from hw.ports import ReadPort, WritePort
from hw.spec.params import HardwareParams

from .bank import Bank

READERS = ("act0", "act1", "residual", "vec_a", "vec_b", "store")
"""Read ports, most important first."""
WRITERS = ("drain", "vec", "load")
"""Write ports, most important first."""
ALWAYS_GRANTED = ("act0", "act1")
"""The MAC unit never waits: it asks for neighbouring words, which lie in different banks."""


class Scratchpad(wiring.Component):
    """`scratch_words` words in `scratch_banks` banks; word `a` lies in bank `a % scratch_banks`.

    Each cycle each bank serves the most important reader and the most important writer that ask for it. A port's
    `ready` says whether a more important port asks for the same bank; it does not depend on the port's own `valid`.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    act0, act1, residual, vec_a, vec_b, store:
        Read ports, most important first. `act0` and `act1` are never refused and must not ask for different words
        of one bank in the same cycle.
    drain, vec, load:
        Write ports, most important first.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._bank_bits = exact_log2(params.scratch_banks)
        self._address_bits = exact_log2(params.scratch_words)
        super().__init__(
            {
                **{name: In(ReadPort(params.word_bytes)) for name in READERS},
                **{name: In(WritePort(params.word_bytes)) for name in WRITERS},
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Grant both ways, then a row and an enable into each bank, then each reader's pick of the banks' words."""
        m = Module()
        depth = self._params.scratch_words // self._params.scratch_banks
        banks = [Bank(depth, self._params.word_bytes) for _ in range(self._params.scratch_banks)]
        for number, bank in enumerate(banks):
            m.submodules[f"bank{number}"] = bank
        readers = [getattr(self, name) for name in READERS]
        writers = [getattr(self, name) for name in WRITERS]
        self._grant(m, readers, always=len(ALWAYS_GRANTED))
        self._grant(m, writers, always=0)
        for number, bank in enumerate(banks):
            self._read(m, bank, number, readers)
            self._write(m, bank, number, writers)
        words = Array(bank.read_data for bank in banks)
        for name, port in zip(READERS, readers, strict=True):
            self._deliver(m, name, port, words)
        return m

    def _bank_of(self, port: FlippedInterface) -> Value:
        return port.addr[: self._bank_bits]

    def _row_of(self, port: FlippedInterface) -> Value:
        return port.addr[self._bank_bits : self._address_bits]

    def _grant(self, m: Module, ports: list[FlippedInterface], always: int) -> None:
        """Ready where no more important port wants the bank; fault where the address lies past the memory's end."""
        for i, port in enumerate(ports):
            rivals = [] if i < always else ports[:i]
            clashes = Cat(rival.valid & (self._bank_of(rival) == self._bank_of(port)) for rival in rivals)
            m.d.comb += [
                port.ready.eq(~clashes.any()),
                port.fault.eq(port.valid & port.addr[self._address_bits :].any()),
            ]

    def _read(self, m: Module, bank: Bank, number: int, readers: list[FlippedInterface]) -> None:
        wants = Cat(port.valid & (self._bank_of(port) == number) for port in readers)
        row = self._row_of(readers[-1])
        for i, port in reversed(list(enumerate(readers[:-1]))):
            row = Mux(wants[i], self._row_of(port), row)
        m.d.comb += [bank.read_en.eq(wants.any()), bank.read_row.eq(row)]

    def _write(self, m: Module, bank: Bank, number: int, writers: list[FlippedInterface]) -> None:
        for port in reversed(writers):
            with m.If(port.valid & (self._bank_of(port) == number)):
                m.d.comb += [
                    bank.write_row.eq(self._row_of(port)),
                    bank.write_data.eq(port.data),
                    bank.write_mask.eq(Mux(port.fault, 0, port.mask)),
                ]

    def _deliver(self, m: Module, name: str, port: FlippedInterface, words: Array) -> None:
        """Pick the bank's word in the cycle after the grant; a register ends the long way out of the block RAM."""
        taken = Signal(name=f"{name}_taken")
        bank = Signal(self._bank_bits, name=f"{name}_bank")
        data = Signal.like(port.data, name=f"{name}_data", reset_less=True)
        m.d.sync += taken.eq(port.valid & port.ready)
        with m.If(port.valid):
            m.d.sync += bank.eq(self._bank_of(port))
        with m.If(taken):
            m.d.sync += data.eq(words[bank])
        m.d.comb += port.data.eq(data)
