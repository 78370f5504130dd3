"""The backend that runs programs on a board."""

import time
from dataclasses import dataclass

from intloom.common.errors import CapacityError, HardwareMismatchError, SimulationError
from intloom.compiler.program.memory import memory_parts, unpack_tensor
from intloom.compiler.program.program import Program, Role, array_use
from intloom.compiler.program.soundness import check_program
from intloom.hw.spec import regs
from intloom.sim.board.bus import WORD_BYTES, BoardError, BusMemory, BusRegisters
from intloom.sim.host.run_program import Ending, HostReport, Interrupt, RunSetup, run_blocking, run_program
from intloom.sim.result import Arrays, ProgressCallback, RunResult
from intloom.sim.rtl.backend import watchdog_of
from intloom.sim.rtl.completion import require_completed
from intloom.sim.rtl.options import RtlOptions

NAME = "board"
_SLOW_MEMORY = 16
"""A board's memory is shared; pauses may be this much longer than those of the simulated one."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.02
"""Seconds between two polls."""


class PolledInterrupt:
    """The end of a run by polling of STATUS.

    Parameters
    ----------
    registers
        The register port.
    seconds
        After this time a run is given up.
    """

    cycle = 0

    def __init__(self, registers: BusRegisters, seconds: float) -> None:
        self._registers = registers
        self._seconds = seconds
        self._end = 0.0

    def arm(self, limit: int) -> None:
        """Start the time limit, which is in seconds here."""
        self._end = time.monotonic() + self._seconds

    async def wait(self) -> Ending:
        """Wait until STATUS says done or error, or for the limit."""
        pause = _SHORTEST_PAUSE
        while True:
            status = regs.unpack("STATUS", await self._registers.read("STATUS"))
            if status["done"] or status["error"]:
                return "interrupt"
            if time.monotonic() > self._end:
                return "timeout"
            time.sleep(pause)  # noqa: ASYNC251  # a transport whose calls block, see run_blocking
            pause = min(2 * pause, _LONGEST_PAUSE)


@dataclass(frozen=True, kw_only=True)
class Board:
    """The accelerator on a board, as its transport shows it."""

    registers: BusRegisters
    memory: BusMemory
    interrupt: Interrupt
    memory_base: int
    """Byte address of the memory window on the accelerator's bus."""
    memory_bytes: int
    seconds: float
    """Time limit of a run."""


class BoardBackend:
    """Runs programs on a board.

    Parameters
    ----------
    board
        The board. Instructions and constants of a program are sent once, as long as no other program runs between.
    """

    name = NAME

    def __init__(self, board: Board) -> None:
        self._board = board
        self._loaded: Program | None = None

    def run(self, program: Program, inputs: Arrays, *, progress: ProgressCallback | None = None) -> RunResult:
        """Outputs of the program, cycles and counters.

        Raises
        ------
        BoardError
            The board does not answer.
        HardwareMismatchError
            The program was compiled for other hardware.
        ProgramError
            The program could leave its memory or hang; see `intloom.compiler.program.soundness`.
        SimulationError
            The accelerator stopped with an error, or did not end within the time limit.
        """
        started = time.monotonic()
        self._check(program)
        if self._loaded is not program:
            # A board has no instruction simulator beside it, and its accelerator reaches memory of other masters.
            check_program(program)
        word = program.params.word_bytes
        constants, tensors = memory_parts(program, inputs)
        parts = tensors if self._loaded is program else constants | tensors
        self._loaded = program
        setup = RunSetup(
            memory_base=self._board.memory_base,
            memory_words=program.memory_words,
            program_word=program.instructions_at,
            instructions=len(program.instructions),
            watchdog=_watchdog(program),
            image={at * word: _whole_words(data) for at, data in parts.items()},
        )
        self._reset()
        board = self._board
        report = run_blocking(run_program(board.registers, board.memory, board.interrupt, setup, limit=0))
        self._require_completed(program, report)
        return self._result(program, report, time.monotonic() - started)

    def _check(self, program: Program) -> None:
        """Refuse anything that is not the accelerator for which the program was compiled."""
        registers = self._board.registers
        if (magic := registers.read_now("MAGIC")) != regs.MAGIC:
            raise BoardError(
                f"register MAGIC must be {regs.MAGIC:#x}, but reads as {magic:#x}: "
                "check the address of the registers, clock, reset and power"
            )
        if (found := registers.read_now("FINGERPRINT")) != program.params.fingerprint():
            raise HardwareMismatchError(
                f"program {program.name!r} is for hardware {program.params.fingerprint():#010x}, "
                f"but the board's is {found:#010x}: compile it for these parameters"
            )
        if (needed := program.memory_words * program.params.word_bytes) > self._board.memory_bytes:
            raise CapacityError(
                f"program {program.name!r} needs {needed:,} bytes of memory, but the window has "
                f"{self._board.memory_bytes:,}: enlarge it (bytes=)"
            )

    def _reset(self) -> None:
        """End an earlier run, whatever became of it, and clear its interrupt."""
        registers = self._board.registers
        run_blocking(registers.write("CONTROL", regs.pack("CONTROL", reset=1)))
        end = time.monotonic() + self._board.seconds
        while regs.unpack("STATUS", registers.read_now("STATUS"))["busy"]:
            if time.monotonic() > end:
                raise BoardError("the accelerator stays busy after a reset: check the memory's address and its reset")
        run_blocking(registers.write("IRQ_STATUS", regs.pack("IRQ_STATUS", done=1, error=1)))

    def _require_completed(self, program: Program, report: HostReport) -> None:
        if report.ended == "timeout":
            self._loaded = None
            raise SimulationError(f"the accelerator did not end within {self._board.seconds:g} s (timeout=)")
        require_completed(program, report, None, limit=0)

    def _result(self, program: Program, report: HostReport, wall_s: float) -> RunResult:
        word, counters = program.params.word_bytes, report.counters
        cycles = counters["CYCLES"]
        outputs = {
            t.name: unpack_tensor(t, program.params, self._board.memory.read(t.address * word, t.words * word))
            for t in program.tensors
            if t.role is Role.OUTPUT
        }
        return RunResult(
            backend=self.name,
            outputs=outputs,
            wall_s=wall_s,
            cycles=cycles,
            macs=program.macs,
            vector_macs=program.vector_macs,
            mac_use=array_use(program.macs, cycles, program.params),
            dram_bytes=(counters["READ_BEATS"] + counters["WRITE_BEATS"]) * program.params.beat_bytes,
            counters=counters,
            report=report,
        )


def _watchdog(program: Program) -> int:
    return max(regs.register("WATCHDOG").reset, _SLOW_MEMORY * watchdog_of(program, RtlOptions()))


def _whole_words(data: bytes) -> bytes:
    """Filled up to the words of the transports."""
    return data + bytes(-len(data) % WORD_BYTES)
