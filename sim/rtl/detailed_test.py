"""The Python side of the detailed bench, run by cocotb: cocotbext-axi partners, random stalls, protocol monitors."""

from __future__ import annotations

import array
import itertools
import mmap
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, First, RisingEdge, Timer
from cocotbext.axi import AddressSpace, AxiBus, AxiLiteBus, AxiLiteMaster, AxiResp, AxiSlave, MemoryRegion

from hw.spec import regs
from sim.rtl.fast_test import BenchFault, read_settings, write_result
from sim.rtl.monitors.axi4 import Axi4Monitor
from sim.rtl.monitors.axi_lite import AxiLiteMonitor
from sim.rtl.monitors.rule import RuleBroken
from sim.rtl.monitors.trace import TraceMonitor
from sim.rtl.status import Status, write_status

_CYCLE_NS = 2
_RESET_CYCLES = 4
_LONG_STALL = 40
"""Now and then a channel refuses for this long, so that a valid that waits for ready would hang."""


def stalls(seed: int, permille: int) -> Iterator[bool]:
    """Random pauses: mostly of single cycles, seldom a long one."""
    dice = random.Random(seed)
    while True:
        if dice.randrange(1000) < permille:
            yield from itertools.repeat(True, _LONG_STALL if dice.randrange(64) == 0 else 1)
        else:
            yield False


class FaultyRegion(MemoryRegion):
    """A memory with one word that cannot be accessed."""

    def __init__(self, memory: mmap.mmap, word: range, directions: int) -> None:
        super().__init__(len(memory), mem=memory)
        self._word = word
        self._directions = directions

    def _check(self, address: int, direction: int) -> None:
        if self._directions & direction and address in self._word:
            raise ValueError("planted error")

    async def _read(self, address: int, length: int, **kwargs: Any) -> bytes:
        self._check(address, 1)
        return bytes(await super()._read(address, length, **kwargs))

    async def _write(self, address: int, data: bytes, **kwargs: Any) -> None:
        self._check(address, 2)
        await super()._write(address, data, **kwargs)


class Registers:
    """Register accesses over AXI4-Lite."""

    def __init__(self, dut: Any) -> None:
        self._master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)

    async def read(self, name: str) -> int:
        """The register's value."""
        answer = await self._master.read(regs.register(name).offset, regs.REGISTER_BYTES)
        self._check(name, answer.resp)
        return int.from_bytes(answer.data, "little")

    async def write(self, name: str, value: int) -> None:
        """Set the register."""
        data = value.to_bytes(regs.REGISTER_BYTES, "little")
        answer = await self._master.write(regs.register(name).offset, data)
        self._check(name, answer.resp)

    def _check(self, name: str, response: AxiResp) -> None:
        if response != AxiResp.OKAY:
            raise BenchFault(f"access to register {name} must be answered OKAY, not {response!r}")


class Testbench:
    """Clock, memory, register port and monitors around the accelerator."""

    def __init__(self, dut: Any, settings: dict[str, Any]) -> None:
        self.dut = dut
        self.cycle = 0
        self.broken: str = ""
        self._settings = settings
        cocotb.start_soon(Clock(dut.clk, _CYCLE_NS, unit="ns").start(start_high=False))
        dut.rst.value = 1
        self._attach_memory(Path(settings["memory"]))
        self.registers = Registers(dut)
        self.trace = TraceMonitor(dut) if hasattr(dut, "trace_started") else None
        self._axi = Axi4Monitor(dut, "m_axi") if settings["monitors"] else None
        self._lite = AxiLiteMonitor(dut, "s_axi") if settings["monitors"] else None

    def _attach_memory(self, path: Path) -> None:
        settings = self._settings
        with path.open("r+b") as file:
            memory = mmap.mmap(file.fileno(), 0)
        word = range(settings["error_byte"], settings["error_byte"] + settings["word_bytes"])
        space = AddressSpace(1 << 64)
        space.register_region(FaultyRegion(memory, word, settings["error_directions"]), settings["base"])
        slave = AxiSlave(AxiBus.from_prefix(self.dut, "m_axi"), self.dut.clk, self.dut.rst, space)
        read, write = slave.read_if, slave.write_if
        channels = (read.ar_channel, read.r_channel, write.aw_channel, write.w_channel, write.b_channel)
        if settings["stall_permille"]:
            for number, channel in enumerate(channels):
                channel.set_pause_generator(stalls(settings["seed"] * 8 + number, settings["stall_permille"]))

    async def reset(self) -> None:
        """Reset, then watch every cycle from there on."""
        await ClockCycles(self.dut.clk, _RESET_CYCLES)
        self.dut.rst.value = 0
        cocotb.start_soon(self._watch())
        await ClockCycles(self.dut.clk, 1)

    async def _watch(self) -> None:
        await RisingEdge(self.dut.clk)
        try:
            while True:
                await RisingEdge(self.dut.clk)
                self.cycle += 1
                if self._axi is not None and self._lite is not None:
                    self._axi.clock()
                    self._lite.clock()
                if self.trace is not None:
                    self.trace.clock(self.cycle)
        except RuleBroken as error:
            self.broken = str(error)

    async def until_interrupt(self, limit: int) -> str:
        """Wait for the interrupt, at most `limit` cycles."""
        last = self.cycle + limit
        while not self.dut.irq.value:
            if self.broken:
                return "violation"
            if self.cycle >= last:
                return "timeout"
            await First(RisingEdge(self.dut.irq), Timer(min(512, last - self.cycle) * _CYCLE_NS, "ns"))
        return "violation" if self.broken else "interrupt"

    def finish(self) -> None:
        """Check the monitors' end conditions."""
        try:
            if self._axi is not None:
                self._axi.finish()
            if self.trace is not None:
                self.trace.finish()
        except RuleBroken as error:
            self.broken = str(error)

    def leave_files(self) -> None:
        """Write trace and status where the fast bench's C++ would have put them."""
        folder = Path(self._settings["result"]).parent
        records = self.trace.records if self.trace is not None else []
        (folder / "trace.bin").write_bytes(array.array("Q", records).tobytes())
        (folder / "snapshots.bin").write_bytes(b"")
        started = tuple(self.trace.started) if self.trace is not None else (0,) * 4
        done = tuple(self.trace.done) if self.trace is not None else (0,) * 4
        write_status(folder / "status.bin", Status(self.cycle, started, done, 0, 0, 0, self.broken))


@cocotb.test()
async def run_program(dut: Any) -> None:
    """Run the program that the settings file names, and write the result file."""
    settings = read_settings()
    bench = Testbench(dut, settings)
    await bench.reset()
    registers = bench.registers
    fingerprint = await registers.read("FINGERPRINT")
    for name, value in settings["setup"]:
        await registers.write(name, value)
    first, started = bench.cycle, time.perf_counter()
    await registers.write("CONTROL", regs.pack("CONTROL", start=1))
    ended = await bench.until_interrupt(settings["limit"])
    seconds, last = time.perf_counter() - started, bench.cycle
    status = regs.unpack("STATUS", await registers.read("STATUS"))
    if ended == "interrupt" and status["done"]:
        bench.finish()
        ended = "violation" if bench.broken else ended
    result = {
        "ended": ended,
        "fingerprint": fingerprint,
        "seconds": seconds,
        "first_cycle": first,
        "last_cycle": last,
        "status": status,
        "error_index": await registers.read("ERROR_INDEX"),
        "counters": {c.name: await registers.read(c.name) for c in regs.COUNTERS},
    }
    bench.leave_files()
    write_result(settings, result)
