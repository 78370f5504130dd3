"""The system on a chip as a simulator: core, accelerator and memory model in one C++ loop."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from intloom.common.errors import SimulationError
from intloom.sim.rtl.bench import prepare
from intloom.sim.rtl.build import Build, BuildPlan, build
from intloom.sim.rtl.job import Job, MemorySettings, RunFiles
from intloom.sim.rtl.ports import parse_ports
from intloom.sim.rtl.process import log_tail, run_simulator
from intloom.sim.rtl.shell import memory_ports

SOC_MEMORY = MemorySettings(read_latency=20, write_latency=10)
"""Memory of the system: nearer than the default, which stands for a large chip, so that cache misses take less."""


@dataclass(frozen=True)
class SocResult:
    """End of a run."""

    cycles: int
    seconds: float
    """Of simulation."""
    build_seconds: float
    """Of the simulator's build."""
    finished: bool
    """The firmware ended the run; otherwise the limit of cycles was reached."""
    violation: str
    """The first AXI rule that the system broke."""
    console: str
    """What the firmware printed."""


def build_soc(name: str, top: str, accelerator: str, core: str) -> Build:
    """The simulator of the system in this Verilog, with its top module's name, from the cache or built now."""
    width = dict(parse_ports(top, name))["m_axi_wdata"].width
    plan = BuildPlan(
        name="soc",
        top=name,
        generated={"soc.v": top, "npu.v": accelerator, "core.v": core, "ports.h": memory_ports(name, width)},
        cpp=("soc_main.cpp",),
        verilator_flags=("--no-timing",),
    )
    return build(plan)


def run_soc(
    simulator: Build, job: Job, files: RunFiles, bit_cycles: int, say: Callable[[str], None] | None = None
) -> SocResult:
    """Run the firmware in the memory file until it ends; `say` gets each line that it prints.

    Raises
    ------
    SimulationError
        The simulator died, or the system broke a rule of AXI.
    """
    prepare(job, files)
    with files.job.open("a", encoding="utf-8") as settings:
        settings.write(f"uart_bit_cycles {bit_cycles}\nresult_file {files.result}\n")
    console = _Console(files.log, say or (lambda _line: None))
    run_simulator([str(simulator.binary), str(files.job)], files.folder, files.log, {}, console.read)
    console.read()
    if not files.result.exists():
        raise SimulationError(f"the simulator ended without a result:\n{log_tail(files.log)}")
    values = json.loads(files.result.read_text(encoding="utf-8"))
    console_text = files.log.read_text(encoding="utf-8", errors="replace")
    result = SocResult(**values, build_seconds=simulator.seconds, console=console_text)
    if result.violation:
        raise SimulationError(f"the system broke a rule of AXI: {result.violation}")
    return result


class _Console:
    """Reads whole lines of a file that grows."""

    def __init__(self, log: Path, say: Callable[[str], None]) -> None:
        self._log, self._say = log, say
        self._position = 0

    def read(self) -> None:
        with self._log.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._position += len(line)
                self._say(line.decode(errors="replace").rstrip("\n"))
