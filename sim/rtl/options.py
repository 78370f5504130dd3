"""The options of an RTL simulation."""

from dataclasses import dataclass, field
from pathlib import Path

from intloom.common.errors import FileFormatError
from intloom.common.jobs import check_jobs
from intloom.sim.rtl.build import BuildWatch
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import MemorySettings


@dataclass(frozen=True, kw_only=True)
class RtlOptions:
    """How the RTL is simulated."""

    bench: FastBench = field(default_factory=FastBench)
    memory: MemorySettings = field(default_factory=MemorySettings)
    limit: int | None = None
    """Cycles after which a run is given up; None: 8 times the compiler's forecast plus 2 million."""
    watchdog: int | None = None
    """Cycles without progress after which the accelerator stops with cause WATCHDOG; None: by the forecast of the
    program's longest instruction and the memory's timing."""
    verilog: Path | str | None = None
    """The accelerator's Verilog: a file's `Path`, or the text; None: generated for the program's parameters."""
    folder: Path | None = None
    """Where the run's files (log, trace, waves) are kept; None: they are removed."""
    on_build: BuildWatch | None = None
    """Called with the progress of a simulator's build."""
    jobs: int = 1
    """Segments of a program that are simulated at the same time; see `intloom.sim.parallel`."""
    dask: str | None = None
    """Address of a Dask scheduler, to simulate the segments there."""

    def __post_init__(self) -> None:
        check_jobs(self.jobs)

    def verilog_text(self) -> str | None:
        """The given Verilog."""
        if not isinstance(self.verilog, Path):
            return self.verilog
        try:
            return self.verilog.read_bytes().decode("utf-8", "replace")
        except OSError as error:
            raise FileFormatError(f"cannot read Verilog {self.verilog}: {error.strerror or error}") from None
