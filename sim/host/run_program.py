"""The driver: loads a program, starts it, waits for its interrupt, and reads status and counters.

All steps are coroutines, because register accesses of a cocotb testbench take simulated time. A transport whose calls
block, such as a memory-mapped board, implements them without an `await` and calls `run_blocking`.
"""

import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from intloom.hw.spec import regs

Ending = Literal["interrupt", "timeout", "violation"]
T = TypeVar("T")
_MAX_LIMIT = (1 << 32) - 1


class Memory(Protocol):
    """The memory that host and accelerator share, addressed in bytes from its base."""

    def read(self, address: int, length: int) -> bytes:
        """The `length` bytes from `address` on."""

    def write(self, address: int, data: bytes) -> None:
        """Store `data` from `address` on."""


class Registers(Protocol):
    """The registers of `intloom.hw.spec.regs` by name; each call is one bus access."""

    async def read(self, name: str) -> int:
        """Value of the register."""

    async def write(self, name: str, value: int) -> None:
        """Set the register."""


class Interrupt(Protocol):
    """The interrupt line, and the clock that its time limit is counted in."""

    @property
    def cycle(self) -> int:
        """Number of the present cycle; 0 where the transport has no cycle counter."""

    def arm(self, limit: int) -> None:
        """Start the time limit: `wait` ends at most `limit` cycles from now."""

    async def wait(self) -> Ending:
        """Wait for the interrupt, the limit, or a protocol violation."""


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """Where a program lies, and how it is supervised."""

    memory_base: int
    """Byte address of the shared memory on the accelerator's bus."""
    memory_words: int
    """Size of the memory that the program may address, in words."""
    program_word: int
    """Word of the first instruction, from the memory's base."""
    instructions: int
    watchdog: int
    """Cycles without progress after which the accelerator stops with cause WATCHDOG."""
    image: Mapping[int, bytes] = field(default_factory=dict)
    """Contents to write before the start, by byte address from the base; empty if the memory is already loaded."""

    def register_writes(self) -> list[tuple[str, int]]:
        """Register writes before the start command, in order."""
        return [
            ("PROGRAM", self.program_word),
            ("LENGTH", self.instructions),
            ("BASE_LOW", self.memory_base & 0xFFFF_FFFF),
            ("BASE_HIGH", self.memory_base >> 32),
            # At most what the register can hold: offsets in instructions have as many bits.
            ("LIMIT", min(self.memory_words, _MAX_LIMIT)),
            ("WATCHDOG", self.watchdog),
            ("IRQ_ENABLE", regs.pack("IRQ_ENABLE", done=1, error=1)),
        ]


@dataclass(frozen=True, kw_only=True)
class HostReport:
    """What the registers said at the end of a run."""

    ended: Ending
    fingerprint: int
    seconds: float
    """From the start command to the end of the run."""
    first_cycle: int
    """Cycle of the start command."""
    last_cycle: int
    status: Mapping[str, int]
    """The fields of STATUS."""
    error_index: int
    counters: Mapping[str, int]


async def load_program(registers: Registers, memory: Memory | None, setup: RunSetup) -> None:
    """Write the image and every register but CONTROL."""
    if memory is not None:
        for address, data in setup.image.items():
            memory.write(address, data)
    for name, value in setup.register_writes():
        await registers.write(name, value)


async def start_program(registers: Registers) -> None:
    """The start command."""
    await registers.write("CONTROL", regs.pack("CONTROL", start=1))


async def read_status(registers: Registers) -> dict[str, int]:
    """The fields of STATUS."""
    return regs.unpack("STATUS", await registers.read("STATUS"))


async def run_program(
    registers: Registers, memory: Memory | None, interrupt: Interrupt, setup: RunSetup, limit: int
) -> HostReport:
    """Run one program to its interrupt, or for `limit` cycles.

    Parameters
    ----------
    registers
        The register port.
    memory
        The shared memory; None if it is already loaded and read back by other means.
    interrupt
        The interrupt line.
    setup
        Where the program lies.
    limit
        Cycles after which the run is given up.
    """
    # Read first: the report names the hardware even if the run never ends.
    fingerprint = await registers.read("FINGERPRINT")
    await load_program(registers, memory, setup)
    first_cycle, started = interrupt.cycle, time.perf_counter()
    # Before the start command, so that no cycle of the run is outside the limit.
    interrupt.arm(limit)
    await start_program(registers)
    ended = await interrupt.wait()
    seconds, last_cycle = time.perf_counter() - started, interrupt.cycle
    return HostReport(
        ended=ended,
        fingerprint=fingerprint,
        seconds=seconds,
        first_cycle=first_cycle,
        last_cycle=last_cycle,
        status=await read_status(registers),
        error_index=await registers.read("ERROR_INDEX"),
        counters={c.name: await registers.read(c.name) for c in regs.COUNTERS},
    )


def run_blocking(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of the driver on a transport whose calls block; it must never suspend."""
    try:
        # A coroutine that never suspends ends at the first `send`.
        steps.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    steps.close()
    raise RuntimeError("the transport suspended: run_blocking takes only transports whose calls block")
