"""The AXI4-Lite register bank, generated from the register table."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.bus.axi4 import Resp
from intloom.hw.bus.axi4_lite import DATA_BITS, Axi4Lite
from intloom.hw.control.counters import COUNTER_BITS, TURN_BITS
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import (
    ADDRESS_BITS,
    CAPABILITIES,
    COUNTERS,
    REGISTER_BYTES,
    REGISTERS,
    Access,
    Register,
    capability_values,
)

_PLAIN_REGISTERS = tuple(r for r in REGISTERS if r not in COUNTERS)


def constants(params: HardwareParams) -> dict[str, int]:
    """Registers that always read the same, with their values."""
    fixed = {r.name: value for r, value in zip(CAPABILITIES, capability_values(params), strict=True)}
    fixed["FINGERPRINT"] = params.fingerprint()
    return fixed | {r.name: r.reset for r in REGISTERS if r.access is Access.RO and r.reset}


def writable_mask(register: Register, params: HardwareParams) -> int:
    """Bits of a read-write register that can be set; the others read as 0."""
    if register.name == "BASE_LOW":
        return ~(params.word_bytes - 1) & 0xFFFFFFFF
    if register.name == "BASE_HIGH":
        return (1 << (params.axi_addr_bits - DATA_BITS)) - 1
    if register.fields:
        return sum((1 << f.width) - 1 << f.lsb for f in register.fields)
    return 0xFFFFFFFF


class Registers(wiring.Component):
    """The registers behind an AXI4-Lite port.

    A read answers `READ_LATENCY` cycles after its address was taken; that of a counter waits for the counter's turn.
    Addresses without a register read as 0, writes to them and to read-only registers do nothing; all are answered OKAY.
    Byte strobes are obeyed.

    Members, besides `bus`: for each register by its name in lower case,
    read-write: its value; read-only, not constant and no counter: the value to read; write-1-to-clear: a mask of flags
    to set, and `<name>_value`; write-only: a mask of pulses, a cycle after the write.

    turn, count:
        A counter, by its place in `COUNTERS`, and its value.
    """

    READ_LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._constants = constants(params)
        members: dict[str, Any] = {
            "bus": Out(Axi4Lite(ADDRESS_BITS)),
            "turn": In(TURN_BITS),
            "count": In(COUNTER_BITS),
        }
        for r in _PLAIN_REGISTERS:
            name = r.name.lower()
            if r.access is Access.RW:
                members[name] = Out(DATA_BITS, init=r.reset)
            elif r.access is Access.WO:
                members[name] = Out(DATA_BITS)
            elif r.access is Access.W1C:
                members |= {name: In(DATA_BITS), f"{name}_value": Out(DATA_BITS)}
            elif r.name not in self._constants:
                members[name] = In(DATA_BITS)
        super().__init__(members)

    @staticmethod
    def model(register: Register, params: HardwareParams, value: int, data: int, strobes: int) -> int:
        """What a register reads after a write, if it read `value` before and nothing else has happened."""
        written = sum(0xFF << 8 * byte for byte in range(REGISTER_BYTES) if strobes >> byte & 1)
        if register.access is Access.RW:
            return (value & ~written | data & written) & writable_mask(register, params)
        return value & ~(data & written) if register.access is Access.W1C else value

    def elaborate(self, platform: object) -> Module:
        """A read side and a write side that know nothing of each other."""
        m = Module()
        self._serve_reads(m)
        self._serve_writes(m)
        return m

    def _readable(self, register: Register) -> Value:
        name = register.name.lower()
        if register.name in self._constants:
            return Const(self._constants[register.name], DATA_BITS)
        if register.access is Access.WO:
            return Const(0, DATA_BITS)
        value: Value = getattr(self, f"{name}_value" if register.access is Access.W1C else name)
        return value

    def _serve_reads(self, m: Module) -> None:
        """Take an address; answer as soon as what stands there is at hand."""
        bus = self.bus
        asked = Signal()
        word = Signal(ADDRESS_BITS - exact_log2(REGISTER_BYTES))
        of_counters = word[TURN_BITS:] == COUNTERS[0].offset // REGISTER_BYTES >> TURN_BITS
        known = Signal()
        plain = Signal(DATA_BITS)
        m.d.comb += [
            bus.ar.ready.eq(~asked & (~bus.r.valid | bus.r.ready)),
            bus.r.payload.resp.eq(Resp.OKAY),
            known.eq(asked & (~of_counters | (word[:TURN_BITS] == self.turn))),
        ]
        with m.Switch(word):
            for register in _PLAIN_REGISTERS:
                with m.Case(register.offset // REGISTER_BYTES):
                    m.d.comb += plain.eq(self._readable(register))
        with m.If(known):
            m.d.sync += [bus.r.valid.eq(1), asked.eq(0), bus.r.payload.data.eq(Mux(of_counters, self.count, plain))]
        with m.Elif(bus.ar.ready):
            m.d.sync += [bus.r.valid.eq(0), asked.eq(bus.ar.valid), word.eq(bus.ar.payload.addr // REGISTER_BYTES)]

    def _serve_writes(self, m: Module) -> None:
        """Take address and data together."""
        bus = self.bus
        take = Signal()
        m.d.comb += [
            take.eq(bus.aw.valid & bus.w.valid & (~bus.b.valid | bus.b.ready)),
            bus.aw.ready.eq(take),
            bus.w.ready.eq(take),
            bus.b.payload.resp.eq(Resp.OKAY),
        ]
        with m.If(take | bus.b.ready):
            m.d.sync += bus.b.valid.eq(take)
        word = bus.aw.payload.addr // REGISTER_BYTES
        for register in _PLAIN_REGISTERS:
            self._write(m, register, take & (word == register.offset // REGISTER_BYTES))

    def _write(self, m: Module, register: Register, here: Value) -> None:
        """Byte by byte, so that a byte's strobe enables its registers."""
        data, strobes = self.bus.w.payload.data, self.bus.w.payload.strb
        mask = Cat(strobe.replicate(8) for strobe in strobes)
        name = register.name.lower()
        if register.access is Access.RW:
            value, writable = getattr(self, name), writable_mask(register, self._params)
            for lsb in range(0, DATA_BITS, 8):
                with m.If(here & strobes[lsb // 8]):
                    m.d.sync += value[lsb : lsb + 8].eq(data[lsb : lsb + 8] & (writable >> lsb & 0xFF))
        elif register.access is Access.WO:
            m.d.sync += getattr(self, name).eq(Mux(here, data & mask, 0))
        elif register.access is Access.W1C:
            value = getattr(self, f"{name}_value")
            m.d.sync += value.eq((value & ~Mux(here, data & mask, 0)) | getattr(self, name))
