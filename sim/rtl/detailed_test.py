"""The cocotb test of the detailed bench: cocotbext-axi bus models, random stalls, protocol monitors."""

import array
import mmap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, First, RisingEdge, Timer
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from intloom.hw.spec import regs
from intloom.sim.host.run_program import Ending, Registers, run_program
from intloom.sim.rtl.axi_slave import AxiSlaveModel
from intloom.sim.rtl.fast_test import TestbenchError, given_job, write_report
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.monitors.axi4 import Axi4Monitor
from intloom.sim.rtl.monitors.axi_lite import AxiLiteMonitor
from intloom.sim.rtl.monitors.trace import TraceMonitor
from intloom.sim.rtl.monitors.violation import ProtocolViolation
from intloom.sim.rtl.status import Status, write_status

_CYCLE_NS = 2
_RESET_CYCLES = 4
_STATUS_CYCLES = 1024


class AxiLiteRegisters:
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
            raise TestbenchError(f"access to register {name} must be answered OKAY, not {response!r}")


class LayerSnapshots:
    """Reads all counters at the end of every layer, as the fast bench's recorder does.

    Parameters
    ----------
    registers
        The register port.
    boundaries
        For every layer, the unit and its count of finished instructions at which the layer is done.
    """

    def __init__(self, registers: Registers, boundaries: Sequence[tuple[int, int]]) -> None:
        self._registers = registers
        self._boundaries = boundaries
        # A queue, because more layers may end while the counters of one are read over the bus.
        self._ended: Queue[int] = Queue()
        self.rows = array.array("Q")
        """Cycle and all counters of every layer's end."""
        self.layers = 0
        """Layers that are done."""
        cocotb.start_soon(self._read())

    def clock(self, cycle: int, done: list[int]) -> None:
        """Find the layers that end in this cycle."""
        while self.layers < len(self._boundaries):
            unit, count = self._boundaries[self.layers]
            if done[unit] < count:
                return
            self.layers += 1
            self._ended.put_nowait(cycle)

    async def _read(self) -> None:
        while True:
            row = [await self._ended.get()]
            row += [await self._registers.read(c.name) for c in regs.COUNTERS]
            self.rows.extend(row)

    async def finish(self, clock: Any) -> None:
        """Wait until all rows are read."""
        while len(self.rows) < self.layers * (1 + len(regs.COUNTERS)):
            await RisingEdge(clock)


class Testbench:
    """Clock, memory, register port and monitors around the accelerator; also the driver's `Interrupt`."""

    def __init__(self, dut: Any, job: Job, files: RunFiles) -> None:
        self.dut = dut
        self.cycle = 0
        self._last_cycle = 0
        self.broken: str = ""
        self._job = job
        self._files = files
        cocotb.start_soon(Clock(dut.clk, _CYCLE_NS, unit="ns").start(start_high=False))
        dut.rst.value = 1
        with files.memory.open("r+b") as file:
            store = mmap.mmap(file.fileno(), 0)
        self._memory = AxiSlaveModel(dut, store, job, lambda: self.cycle)
        self.registers = AxiLiteRegisters(dut)
        self.trace = TraceMonitor(dut) if hasattr(dut, "trace_started") else None
        self.snapshots = LayerSnapshots(self.registers, job.boundaries)
        self._axi = Axi4Monitor(dut, "m_axi", job.beat_bytes)
        self._lite = AxiLiteMonitor(dut, "s_axi")

    async def reset(self) -> None:
        """Reset, then check every cycle."""
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
                self._axi.clock()
                self._lite.clock()
                if self.trace is not None:
                    self.trace.clock(self.cycle)
                    self.snapshots.clock(self.cycle, self.trace.done)
                if self.cycle % _STATUS_CYCLES == 0:
                    self._publish()
        except ProtocolViolation as error:
            self.broken = str(error)

    def arm(self, limit: int) -> None:
        """Start the time limit."""
        self._last_cycle = self.cycle + limit

    async def wait(self) -> Ending:
        """Wait for the interrupt, the limit, or a protocol violation."""
        while not self.dut.irq.value:
            if self.broken:
                return "violation"
            if self.cycle >= self._last_cycle:
                return "timeout"
            # `broken` is no trigger, so the timer bounds how late a violation is noticed.
            await First(RisingEdge(self.dut.irq), Timer(min(512, self._last_cycle - self.cycle) * _CYCLE_NS, "ns"))
        return "violation" if self.broken else "interrupt"

    def finish(self) -> None:
        """Check the monitors' end conditions."""
        try:
            self._axi.finish()
            if self.trace is not None:
                self.trace.finish()
        except ProtocolViolation as error:
            self.broken = str(error)

    def write_files(self) -> None:
        """Write trace, snapshots and status in the formats of the fast bench's C++."""
        records = self.trace.records if self.trace is not None else []
        self._files.trace.write_bytes(array.array("Q", records).tobytes())
        self._files.snapshots.write_bytes(self.snapshots.rows.tobytes())
        if self._job.log_writes:
            self._files.writes.write_bytes(self._memory.writes)
        self._publish()

    def _publish(self) -> None:
        started = tuple(self.trace.started) if self.trace is not None else (0,) * 4
        done = tuple(self.trace.done) if self.trace is not None else (0,) * 4
        status = Status(self.cycle, started, done, self.snapshots.layers, 0, 0, self.broken)
        write_status(self._files.status, status)


@cocotb.test()
async def run_job(dut: Any) -> None:
    """Run the job, and write the result file."""
    job, files = given_job()
    bench = Testbench(dut, job, files)
    await bench.reset()
    report = await run_program(bench.registers, None, bench, job.setup(), job.limit)
    # After a hang or an error, outstanding transfers are no violation of their own.
    if report.ended == "interrupt" and report.status["done"]:
        bench.finish()
        await bench.snapshots.finish(dut.clk)
    bench.write_files()
    write_report(files, replace(report, ended="violation") if bench.broken else report)
