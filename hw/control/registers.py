"""The AXI4-Lite register bank, generated from the register table."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.bus.axi4 import Resp
from intloom.hw.bus.axi4_lite import DATA_BITS, Axi4Lite
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import (
    ADDRESS_BITS,
    CAPABILITIES,
    COUNTER_BITS,
    COUNTER_INDEX_BITS,
    COUNTERS,
    REGISTER_BYTES,
    REGISTERS,
    Access,
    Register,
    capability_values,
)

_PLAIN_REGISTERS = tuple(r for r in REGISTERS if r not in COUNTERS)


def constants(params: HardwareParams) -> dict[str, int]:
    """Names and values of the constant registers."""
    fixed = {r.name: value for r, value in zip(CAPABILITIES, capability_values(params), strict=True)}
    fixed["FINGERPRINT"] = params.fingerprint()
    return fixed | {r.name: r.reset for r in REGISTERS if r.access is Access.RO and r.reset}


def writable_mask(register: Register, params: HardwareParams) -> int:
    """Bits of a read-write register that can be written; the others read as 0."""
    if register.name == "BASE_LOW":
        return ~(params.word_bytes - 1) & 0xFFFFFFFF
    if register.name == "BASE_HIGH":
        return (1 << (params.axi_addr_bits - DATA_BITS)) - 1
    if register.fields:
        return sum((1 << f.width) - 1 << f.lsb for f in register.fields)
    return 0xFFFFFFFF


class Registers(wiring.Component):
    """The register bank behind an AXI4-Lite slave port.

    Addresses without a register read as 0; writes to them and to read-only registers have no effect, nor have writes to
    lockable registers after LOCK.window is set. Every access is answered OKAY. Byte strobes apply.

    Parameters
    ----------
    params
        The accelerator's parameters, which the constant registers report.

    Members
    -------
    bus
        The AXI4-Lite slave.
    <name>
        One member per register, named in lower case. Read-write: its value. Read-only, if neither constant nor a
        counter: the value to read. Write-1-to-clear: a mask of flags to set. Write-1-to-set: its value. Write-only: a
        mask of pulses.
    <name>_value
        Flags of a write-1-to-clear register.
    scan_index, count
        The counter that `Counters` visits in this cycle, and its value.

    Handshake
    ---------
    The channels are streams. AW and W transfer in the same cycle, when both are valid and B is free. Pulses of a
    write-only register last 1 cycle, in the cycle after the write; no write transfers in that cycle.

    Timing
    ------
    From the address on AR to `r.valid`: `READ_LATENCY` = 2 cycles; for a counter, until the scan reaches its index, at
    most `Counters.SCAN_PERIOD` + 1 cycles. From AW and W to `b.valid`: 1 cycle. Reads do not overlap.

    Requirements
    ------------
    None.

    Reset and faults
    ----------------
    The soft reset does not reach this component: registers keep their values. No faults. With `register_errors` an
    access where no register is, and a write of a read-only register, is answered with SLVERR; a write that LOCK
    forbids, with OKAY.
    """

    READ_LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._constants = constants(params)
        members: dict[str, Any] = {
            "bus": Out(Axi4Lite(ADDRESS_BITS)),
            "scan_index": In(COUNTER_INDEX_BITS),
            "count": In(COUNTER_BITS),
        }
        for r in _PLAIN_REGISTERS:
            name = r.name.lower()
            if r.access is Access.RW:
                members[name] = Out(DATA_BITS, init=r.reset)
            elif r.access in (Access.WO, Access.W1S):
                members[name] = Out(DATA_BITS)
            elif r.access is Access.W1C:
                members |= {name: In(DATA_BITS), f"{name}_value": Out(DATA_BITS)}
            elif r.name not in self._constants:
                members[name] = In(DATA_BITS)
        super().__init__(members)
        # An attribute, because a proof inspects it.
        self.read_pending = Signal(name="pending")

    @staticmethod
    def model(
        register: Register, params: HardwareParams, value: int, data: int, strobes: int, *, locked: bool = False
    ) -> int:
        """The value of a register after a write, if it was `value` before and hardware changed nothing."""
        written = sum(0xFF << 8 * byte for byte in range(REGISTER_BYTES) if strobes >> byte & 1)
        if register.access is Access.RW and not (locked and register.lockable):
            return (value & ~written | data & written) & writable_mask(register, params)
        if register.access is Access.W1S:
            return value | data & written & writable_mask(register, params)
        return value & ~(data & written) if register.access is Access.W1C else value

    def elaborate(self, platform: object) -> Module:
        """Independent read and write sides."""
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
        """Accept an address, then answer when the value is available."""
        bus, pending = self.bus, self.read_pending
        word = Signal(ADDRESS_BITS - exact_log2(REGISTER_BYTES))
        # The counters' block is aligned to its size: the upper bits select it, and the lower ones are the scan index.
        is_counter = word[COUNTER_INDEX_BITS:] == COUNTERS[0].offset // REGISTER_BYTES >> COUNTER_INDEX_BITS
        available = Signal()
        plain = Signal(DATA_BITS)
        m.d.comb += [
            bus.ar.ready.eq(~pending & (~bus.r.valid | bus.r.ready)),
            available.eq(pending & (~is_counter | (word[:COUNTER_INDEX_BITS] == self.scan_index))),
        ]
        error = Signal()
        if self._params.register_errors:
            counters = len(COUNTERS)
            m.d.comb += error.eq(Mux(is_counter, word[:COUNTER_INDEX_BITS] >= counters, 1))
        with m.Switch(word):
            for register in _PLAIN_REGISTERS:
                with m.Case(register.offset // REGISTER_BYTES):
                    m.d.comb += [plain.eq(self._readable(register)), error.eq(0)]
        with m.If(available):
            m.d.sync += [bus.r.valid.eq(1), pending.eq(0), bus.r.payload.data.eq(Mux(is_counter, self.count, plain))]
            m.d.sync += bus.r.payload.resp.eq(Mux(error, Resp.SLVERR, Resp.OKAY))
        with m.Elif(bus.ar.ready):
            m.d.sync += [bus.r.valid.eq(0), pending.eq(bus.ar.valid), word.eq(bus.ar.payload.addr // REGISTER_BYTES)]

    def _serve_writes(self, m: Module) -> None:
        """Accept address and data in the same cycle."""
        bus = self.bus
        fire = Signal()
        m.d.comb += [
            # A slave may wait for both valids before it raises a ready (AXI4 A3.3.1). Taking both together needs no
            # register for either, and `b.valid` follows both handshakes, as the same rule demands.
            # No write follows a command at once: START then finds the settings that were written before it.
            fire.eq(bus.aw.valid & bus.w.valid & (~bus.b.valid | bus.b.ready) & ~self.control.any()),
            bus.aw.ready.eq(fire),
            bus.w.ready.eq(fire),
        ]
        word = bus.aw.payload.addr // REGISTER_BYTES
        writable = Signal(init=1)
        if self._params.register_errors:
            offsets = (r.offset // REGISTER_BYTES for r in _PLAIN_REGISTERS if r.access is not Access.RO)
            m.d.comb += writable.eq(Cat(word == offset for offset in offsets).any())
        with m.If(fire | bus.b.ready):
            m.d.sync += bus.b.valid.eq(fire)
        with m.If(fire):
            m.d.sync += bus.b.payload.resp.eq(Mux(writable, Resp.OKAY, Resp.SLVERR))
        for register in _PLAIN_REGISTERS:
            self._write(m, register, fire & (word == register.offset // REGISTER_BYTES))

    def _write(self, m: Module, register: Register, selected: Value) -> None:
        """Write byte by byte: each strobe is the clock enable of its byte, without a read-modify-write multiplexer."""
        data, strobes = self.bus.w.payload.data, self.bus.w.payload.strb
        mask = Cat(strobe.replicate(8) for strobe in strobes)
        name = register.name.lower()
        if register.access is Access.RW:
            value, writable = getattr(self, name), writable_mask(register, self._params)
            if register.lockable:
                selected &= ~self.lock.any()
            for lsb in range(0, DATA_BITS, 8):
                with m.If(selected & strobes[lsb // 8]):
                    m.d.sync += value[lsb : lsb + 8].eq(data[lsb : lsb + 8] & (writable >> lsb & 0xFF))
        elif register.access is Access.W1S:
            with m.If(selected):
                value, writable = getattr(self, name), writable_mask(register, self._params)
                m.d.sync += value.eq(value | (data & mask & writable))
        elif register.access is Access.WO:
            m.d.sync += getattr(self, name).eq(Mux(selected, data & mask, 0))
        elif register.access is Access.W1C:
            value = getattr(self, f"{name}_value")
            # Set wins over clear: an event in the cycle of the software's write is not lost.
            m.d.sync += value.eq((value & ~Mux(selected, data & mask, 0)) | getattr(self, name))
