"""The fast bench: clock and memory model in C++; Python runs only when the HDL shell signals an event.

cocotb's own main program runs all callback phases in every half cycle. csrc/fast_main.cpp runs whole cycles and enters
those phases only when the shell's `wake` changes or a timer expires. The model then needs neither `--timing` nor
visible signals beyond the shell's ports. `intloom bench` measures the remaining overhead over the bare loop.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from intloom.common.extras import require_extra
from intloom.hw.spec.params import HardwareParams
from intloom.sim.host.run_program import HostReport
from intloom.sim.rtl.bench import Watch, run_cocotb
from intloom.sim.rtl.build import Build, BuildPlan, BuildWatch, build
from intloom.sim.rtl.clock_edges import COUNT_FLAG
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.library import library_ahead
from intloom.sim.rtl.own_sources import FASTEST
from intloom.sim.rtl.shell import SHELL_TOP, bench_shell, visibility
from intloom.sim.rtl.toolchain import toolchain
from intloom.sim.rtl.verilog import is_generated
from intloom.sim.rtl.write_taps import result_taps

_TEST_MODULE = "intloom.sim.rtl.fast_test"


def cocotb_link_flags() -> tuple[str, ...]:
    """Linker flags that bring cocotb's VPI library into a simulator."""
    require_extra("sim", "cocotb_tools.config")
    import cocotb_tools.config

    libs = cocotb_tools.config.libs_dir
    return (f"-Wl,-rpath,{libs}", f"-L{libs}", "-lcocotbvpi_verilator")


@dataclass(frozen=True, kw_only=True)
class FastBench:
    """Cycle-accurate and fast: for whole networks."""

    taps: bool = False
    """Log loads into the local memories too, for jobs with `log_writes`; results are always logged."""
    waves: bool = False
    """Able to record waves, for jobs with a window of cycles."""
    plusargs: tuple[str, ...] = ()
    """Arguments that the Verilog itself reads, such as `+injected=3`."""

    def logs_results(self, verilog: str) -> bool:
        """Whether the write log contains the results that are written into the scratchpad."""
        return bool(result_taps(verilog))

    def compiled_ahead(self) -> AbstractContextManager[object]:
        """Compile the library while the block runs."""
        return library_ahead(self._flags(), toolchain())

    def plan(self, verilog: str) -> BuildPlan:
        """The fast bench around the accelerator in `verilog`."""
        shell = bench_shell(verilog, self.taps)
        return BuildPlan(
            name="fast",
            top=SHELL_TOP,
            generated={"npu.v": verilog, "bench.sv": shell, "visible.vlt": visibility(shell)},
            cpp=("fast_main.cpp",),
            verilator_flags=self._flags(),
            link_flags=cocotb_link_flags(),
            # A simulator with taps or waves is used once, so its compile time dominates.
            optimize="-O1" if self.taps or self.waves else FASTEST,
        )

    def build(self, verilog: str, watch: BuildWatch | None = None) -> Build:
        """The simulator of this Verilog, from the cache or built now; `watch` gets the progress of the build."""
        return build(self.plan(verilog), watch)

    def run(self, simulator: Build, job: Job, files: RunFiles, watch: Watch | None = None) -> HostReport:
        """Run `job`; the memory file is changed in place; `watch` gets the status several times a second."""
        command = [str(simulator.binary), f"+job={files.job}", *self.plusargs]
        return run_cocotb(command, (SHELL_TOP, _TEST_MODULE), job, files, watch)

    def _flags(self) -> tuple[str, ...]:
        return ("--vpi", "--no-timing", COUNT_FLAG, *(("--trace-fst",) if self.waves else ()))


def build_for(
    bench: FastBench, params: HardwareParams, verilog: Callable[[], str], watch: BuildWatch | None = None
) -> Build:
    """The simulator of the hardware `params`, whose `verilog` is generated and built if it is not in the cache."""
    # Elaboration uses one core.
    with nullcontext() if is_generated(params) else bench.compiled_ahead():
        return bench.build(verilog(), watch)
