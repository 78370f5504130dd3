"""The cocotb test of the fast bench: the transports of the host driver, and the run.

It awaits only changes of the shell's `wake` output, so Python runs about 100 times in a run of millions of cycles.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Timer, ValueChange

from intloom.hw.spec import regs
from intloom.sim.host.run_program import Ending, HostReport, run_program
from intloom.sim.rtl.job import JOB_VARIABLE, Job, RunFiles, read_job

_CYCLE_NS = 2
_RESET_CYCLES = 4
_OKAY = 0


class TestbenchError(RuntimeError):
    """The testbench itself failed."""


class ShellRegisters:
    """Register accesses through the shell's request ports."""

    def __init__(self, dut: Any) -> None:
        self._dut = dut
        self._answers = 0
        self._toggle = 0

    async def _access(self, name: str, write: int, data: int) -> int:
        dut = self._dut
        dut.request_write.value = write
        dut.request_address.value = regs.register(name).offset
        dut.request_data.value = data
        # A toggle, not a pulse: no second entry into Python is needed to take it back.
        self._toggle ^= 1
        dut.request.value = self._toggle
        self._answers = (self._answers + 1) & 0xFF
        # The count is compared, since `wake` also changes for other reasons.
        while int(dut.answers.value) != self._answers:
            await ValueChange(dut.wake)
        if int(dut.answer_code.value) != _OKAY:
            raise TestbenchError(f"access to register {name} must be answered OKAY, not {int(dut.answer_code.value)}")
        return int(dut.answer.value)

    async def read(self, name: str) -> int:
        """The register's value."""
        return await self._access(name, 0, 0)

    async def write(self, name: str, value: int) -> None:
        """Set the register."""
        await self._access(name, 1, value)


async def reset(dut: Any) -> None:
    """Hold the accelerator in reset for a few cycles with the shell idle."""
    dut.request.value = 0
    dut.limit.value = 0
    dut.rst.value = 1
    await Timer(_RESET_CYCLES * _CYCLE_NS, "ns")
    dut.rst.value = 0
    await Timer(_CYCLE_NS, "ns")


def given_job() -> tuple[Job, RunFiles]:
    """The job of this run and its files."""
    return read_job(Path(os.environ[JOB_VARIABLE]))


def write_report(files: RunFiles, report: HostReport) -> None:
    """Write the report for the process that started the simulator."""
    files.result.write_text(json.dumps(asdict(report)), encoding="utf-8")


class FastInterrupt:
    """The shell's interrupt, time limit and violation outputs."""

    def __init__(self, dut: Any) -> None:
        self._dut = dut

    @property
    def cycle(self) -> int:
        """Number of the present cycle."""
        return int(self._dut.cycle.value)

    def arm(self, limit: int) -> None:
        """Set the cycle at which `timeout` rises."""
        self._dut.limit.value = self.cycle + limit

    async def wait(self) -> Ending:
        """Sleep until one of the three outputs is high."""
        while True:
            # Violation first: what an accelerator reports after a protocol violation is not reliable.
            if int(self._dut.violation.value):
                return "violation"
            if int(self._dut.interrupted.value):
                return "interrupt"
            if int(self._dut.timeout.value):
                return "timeout"
            await ValueChange(self._dut.wake)


@cocotb.test()
async def run_job(dut: Any) -> None:
    """Run the job, and write the result file."""
    job, files = given_job()
    await reset(dut)
    write_report(files, await run_program(ShellRegisters(dut), None, FastInterrupt(dut), job.setup(), job.limit))
