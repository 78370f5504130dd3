"""Programs on one hardware, and what they reach of it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from intloom.common.atomic_write import write_text
from intloom.common.errors import SimulationError
from intloom.hw.spec.isa import INSTRUCTION_BYTES
from intloom.hw.spec.regs import REGISTERS, Access, pack
from intloom.sim.random_programs.compare import compare, simulator_of
from intloom.sim.random_programs.program import RandomProgram
from intloom.sim.rtl.bare import bare_plan
from intloom.sim.rtl.build import Build, BuildPlan, build
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.coverage.fields import reached
from tests.hw.coverage.patterns import Series
from tests.sim.random_programs.extremes import WIDE
from tests.sim.random_programs.short_runs import PROGRAM_BYTE, Ending, checked, ending
from tests.support.shapes import SHAPES
from tools.coverage.counts import add_up, load, save

# Verilator 5.48 crashes on Amaranth's Verilog with --coverage, which includes FSM coverage.
_FLAGS = ("--coverage-line", "--coverage-toggle")
_TOGGLES, _ODD_HOST = (Path(__file__).with_name(name) for name in ("toggles.h", "odd_host.h"))
_LAST_PORT = "top.s_axi_rready = 1;\n"
"""Of those that the bare loop drives for its host."""
_ODD_ACCESSES = 40
"""Times that the odd host reads all registers, and writes those of `_CLOSING`."""
_RANDOM_MEMORIES = ("--x-initial", "unique")
PATIENT, LIMIT = 1 << 16, 1_000_000
"""Cycles without progress, and cycles, in which a program with long bursts or a high index ends by itself."""
HARDWARE = {"wide": WIDE, **SHAPES}
"""What is measured: the largest fields and memories, and every structural branch."""
_CLOSING = (
    ("CONTROL", 0xFFFF_FFFF ^ pack("CONTROL", start=1, reset=1)),
    *((r.name, value) for value in (0xFFFF_FFFF, 0) for r in REGISTERS if r.access in (Access.RW, Access.W1C)),
    ("CONTROL", pack("CONTROL", reset=1)),
    ("LENGTH", 4),
    ("LIMIT", 0xFFFF_FFFF),
    ("CONTROL", pack("CONTROL", start=1)),
    ("CONTROL", pack("CONTROL", reset=1)),
    ("LOCK", 0xFFFF_FFFF),
)
"""Every bit of the registers both ways, a soft reset, another one while fetch reads where no program is, and a lock."""
RESET = pack("CONTROL", reset=1)
PAUSE = ("IRQ_ENABLE", 0)
PAUSES = 15
"""Writes between the start of a program and the next reset: more cycles than fetch, decoding and watchdog take."""
_READ = tuple(register.name for register in REGISTERS)


class Collector:
    """Runs programs on one hardware and adds up what they reach."""

    def __init__(self, name: str, folder: Path, runs: Path) -> None:
        self.name, self.params = name, HARDWARE[name]
        verilog = verilog_of(self.params)
        # Points are lines of the Verilog: counts of another version say nothing.
        folder = folder / hashlib.sha256(verilog.encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        self._points, self._reached, self._runs = folder / "points.json", folder / "reached.json", runs
        self._done = folder / "done"
        self.counts = load(self._points)
        self.seen: Counter[str] = Counter(json.loads(self._reached.read_text()) if self._reached.exists() else {})

    @cached_property
    def _simulator(self) -> Build:
        return build(self._plan())

    @cached_property
    def _unwritten(self) -> Build:
        """The simulator whose memories have random contents until they are written."""
        return build(self._plan(*_RANDOM_MEMORIES))

    def _plan(self, *flags: str) -> BuildPlan:
        plan = bare_plan(verilog_of(self.params), optimize="-O1", flags=(*_FLAGS, *flags))
        generated = {**plan.generated, _TOGGLES.name: _TOGGLES.read_text(encoding="utf-8")}
        return replace(plan, generated=generated, cxx_flags=("-include", _TOGGLES.name))

    def access_oddly(self) -> None:
        """Read and write registers as a host with odd accesses does; a program may run by chance."""
        plan = self._plan()
        before, last_port, behind = plan.generated["ports.h"].partition(_LAST_PORT)
        assert last_port
        ports = f"{before}{last_port}    odd_host(top, m);\n{behind}"
        host = {"ports.h": ports, _ODD_HOST.name: _ODD_HOST.read_text(encoding="utf-8")}
        flags = (*plan.cxx_flags, "-include", _ODD_HOST.name)
        simulator = build(replace(plan, generated={**plan.generated, **host}, cxx_flags=flags))
        ending(
            simulator,
            self.params,
            checked(self.params),
            _READ * _ODD_ACCESSES,
            closing=_CLOSING * _ODD_ACCESSES,
            limit=1,
        )
        self._collect()

    def run(self, program: RandomProgram, stalls: int = 0) -> None:
        """Run a program that ends well, on the simulator that counts if it is for its hardware."""
        counts = program.params == self.params
        found = compare(program, self._simulator if counts else simulator_of(program), stalls, taps=not counts)
        if found.problem:
            raise SimulationError(f"seed {program.seed}: {found.problem}")
        self.seen.update(reached(program.instructions()))
        self._collect()

    def stop(self, program: bytes, before: tuple[tuple[str, int], ...] = (), **settings: Any) -> Ending | None:
        """Run a program on zero memories, read all registers, write `before` and all registers, and start once more."""
        found = ending(self._simulator, self.params, program, _READ, closing=(*before, *_CLOSING), **settings)
        self._collect()
        return found

    def read_unwritten(self, program: bytes) -> Ending | None:
        """Run a program whose local memories have random contents."""
        found = ending(self._unwritten, self.params, program, watchdog=PATIENT, limit=LIMIT)
        self._collect()
        return found

    def follow(self, series: Series, **settings: Any) -> Ending | None:
        """Run programs one after the other, with a soft reset between them."""
        word, closing = PROGRAM_BYTE // self.params.word_bytes, list[tuple[str, int]]()
        for program, following in pairwise(series):
            word += len(program) // self.params.word_bytes
            start = (("CONTROL", RESET), ("PROGRAM", word), ("LENGTH", len(following) // INSTRUCTION_BYTES))
            closing += [*start, ("CONTROL", pack("CONTROL", start=1)), *[PAUSE] * PAUSES]
        count = len(series[0]) // INSTRUCTION_BYTES
        return self.stop(b"".join(series), tuple(closing), instructions=count, **settings)

    def once(self, step: Callable[[Collector], None]) -> None:
        """Make a step that an earlier call has not completed with this version of the RTL."""
        if self.is_open(step.__name__):
            step(self)
            self.close(step.__name__)

    def is_open(self, name: str) -> bool:
        """Whether no earlier call has completed a step."""
        return name not in self._completed()

    def close(self, name: str) -> None:
        """Note that a step is complete, and keep its counts."""
        if self.is_open(name):
            self.save()
            write_text(self._done, "\n".join([*self._completed(), name]))
            print(f"{datetime.now(UTC):%H:%M:%S} {self.name} {name}", flush=True)

    def _completed(self) -> list[str]:
        return self._done.read_text().splitlines() if self._done.exists() else []

    def _collect(self, at_least: int = 40) -> None:
        """Add up the files of the last runs; together, because most of the time is the first file's."""
        paths = [*self._runs.glob("*.dat")]
        if len(paths) >= at_least:
            self.counts.update(add_up(paths))
            for path in paths:
                path.unlink()

    def save(self) -> None:
        """Keep the counts."""
        self._collect(at_least=1)
        save(self.counts, self._points)
        write_text(self._reached, json.dumps(self.seen))
