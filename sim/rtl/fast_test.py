"""The Python side of the fast bench, run by cocotb inside the simulator: programs, starts, sleeps, reads back.

It awaits only changes of the shell's `wake` port, so Python runs some hundred times in a run of millions of cycles.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Timer, ValueChange

from intloom.hw.spec import regs
from intloom.sim.rtl.job import SETTINGS_VARIABLE

_CYCLE_NS = 2
_RESET_CYCLES = 4
_OKAY = 0


class TestbenchError(RuntimeError):
    """The bench itself met something impossible."""


class RegisterPort:
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
        self._toggle ^= 1
        dut.request.value = self._toggle
        self._answers = (self._answers + 1) & 0xFF
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
    """Hold the accelerator in reset for a few cycles with the shell at rest."""
    dut.request.value = 0
    dut.limit.value = 0
    dut.rst.value = 1
    await Timer(_RESET_CYCLES * _CYCLE_NS, "ns")
    dut.rst.value = 0
    await Timer(_CYCLE_NS, "ns")


def read_settings() -> dict[str, Any]:
    """What the process that started the simulator wants done."""
    settings: dict[str, Any] = json.loads(Path(os.environ[SETTINGS_VARIABLE]).read_text(encoding="utf-8"))
    return settings


def write_result(settings: dict[str, Any], result: dict[str, Any]) -> None:
    """Leave the result for the process that started the simulator."""
    Path(settings["result"]).write_text(json.dumps(result), encoding="utf-8")


async def _until_something_happens(dut: Any) -> str:
    while True:
        if int(dut.violation.value):
            return "violation"
        if int(dut.interrupted.value):
            return "interrupt"
        if int(dut.timeout.value):
            return "timeout"
        await ValueChange(dut.wake)


async def drive(dut: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """One run of the program; returns what the registers said at its end."""
    port = RegisterPort(dut)
    await reset(dut)
    fingerprint = await port.read("FINGERPRINT")
    for name, value in settings["setup"]:
        await port.write(name, value)
    first = int(dut.cycle.value)
    dut.limit.value = first + settings["limit"]
    started = time.perf_counter()
    await port.write("CONTROL", regs.pack("CONTROL", start=1))
    ended = await _until_something_happens(dut)
    seconds = time.perf_counter() - started
    last = int(dut.cycle.value)
    return {
        "ended": ended,
        "fingerprint": fingerprint,
        "seconds": seconds,
        "first_cycle": first,
        "last_cycle": last,
        "status": regs.unpack("STATUS", await port.read("STATUS")),
        "error_index": await port.read("ERROR_INDEX"),
        "counters": {c.name: await port.read(c.name) for c in regs.COUNTERS},
    }


@cocotb.test()
async def run_program(dut: Any) -> None:
    """Run the program that the settings file names, and write the result file."""
    settings = read_settings()
    write_result(settings, await drive(dut, settings))
