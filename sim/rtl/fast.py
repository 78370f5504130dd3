"""The fast bench: clock and memory model in C++; Python runs only when the HDL shell signals an event.

cocotb's own main program runs all callback phases in every half cycle. csrc/fast_main.cpp runs whole cycles and enters
those phases only when the shell's `wake` changes or a timer expires. The model then needs neither `--timing` nor
visible signals beyond the shell's ports. `intloom bench` measures the remaining overhead over the bare loop.
"""

from contextlib import AbstractContextManager

from intloom.common.extras import require_extra
from intloom.sim.host.run_program import HostReport
from intloom.sim.rtl.bench import Watch, prepare, read_report
from intloom.sim.rtl.build import Build, BuildPlan, BuildWatch, build
from intloom.sim.rtl.clock_edges import COUNT_FLAG
from intloom.sim.rtl.job import JOB_VARIABLE, Job, RunFiles
from intloom.sim.rtl.library import library_ahead
from intloom.sim.rtl.own_sources import FASTEST
from intloom.sim.rtl.process import cocotb_environment, run_simulator
from intloom.sim.rtl.shell import SHELL_TOP, bench_shell, visibility
from intloom.sim.rtl.status import read_status
from intloom.sim.rtl.toolchain import toolchain
from intloom.sim.rtl.write_taps import result_taps

_TEST_MODULE = "intloom.sim.rtl.fast_test"


def cocotb_link_flags() -> tuple[str, ...]:
    """Linker flags that bring cocotb's VPI library into a simulator."""
    require_extra("sim", "cocotb_tools.config")
    import cocotb_tools.config

    libs = cocotb_tools.config.libs_dir
    return (f"-Wl,-rpath,{libs}", f"-L{libs}", "-lcocotbvpi_verilator")


def fast_plan(
    verilog: str, threads: int = 1, taps: bool = False, waves: bool = False, hdl_clock: bool = False
) -> BuildPlan:
    """The fast bench around the accelerator in `verilog`; `taps` adds the loads into local memories to the log."""
    shell = bench_shell(verilog, taps, hdl_clock=hdl_clock)
    return BuildPlan(
        name="fast",
        top=SHELL_TOP,
        generated={"npu.v": verilog, "bench.sv": shell, "visible.vlt": visibility(shell)},
        cpp=("fast_main.cpp",),
        verilator_flags=_flags(threads, waves, hdl_clock),
        cxx_flags=("-DHDL_CLOCK=1",) if hdl_clock else (),
        link_flags=cocotb_link_flags(),
        # A simulator with taps or waves is used once, so its compile time dominates.
        optimize="-O1" if taps or waves else FASTEST,
    )


def _flags(threads: int, waves: bool, hdl_clock: bool) -> tuple[str, ...]:
    timing = "--timing" if hdl_clock else "--no-timing"
    threaded = ("--threads", str(threads)) if threads > 1 else ()
    return ("--vpi", timing, COUNT_FLAG, *threaded, *(("--trace-fst",) if waves else ()))


class FastBench:
    """Cycle-accurate and fast: for whole networks.

    Parameters
    ----------
    threads
        Threads of the simulated model.
    taps
        Log loads into the local memories too, for jobs with `log_writes`; results are always logged.
    waves
        Able to record waves, for jobs with a window of cycles.
    plusargs
        Arguments that the Verilog itself reads, such as `+injected=3`.
    hdl_clock
        Make the clock in HDL instead of in C++; Verilator then schedules a delay in every half cycle.
    """

    name = "fast"

    def __init__(
        self,
        threads: int = 1,
        *,
        taps: bool = False,
        waves: bool = False,
        plusargs: tuple[str, ...] = (),
        hdl_clock: bool = False,
    ) -> None:
        self._threads = threads
        self._hdl_clock = hdl_clock
        self._plusargs = plusargs
        self._taps = taps
        self._waves = waves

    def logs_results(self, verilog: str) -> bool:
        """Whether the write log contains the results that are written into the scratchpad."""
        return bool(result_taps(verilog))

    def compiled_ahead(self) -> AbstractContextManager[object]:
        """Compile the library while the block runs."""
        form = self._threads, self._waves, self._hdl_clock
        return library_ahead(_flags(*form), toolchain())

    def build(self, verilog: str, watch: BuildWatch | None = None) -> Build:
        """The simulator of this Verilog, from the cache or built now; `watch` gets the progress of the build."""
        return build(fast_plan(verilog, self._threads, self._taps, self._waves, self._hdl_clock), watch)

    def run(self, simulator: Build, job: Job, files: RunFiles, watch: Watch | None = None) -> HostReport:
        """Run `job`; the memory file is changed in place; `watch` gets the status several times a second."""
        prepare(job, files)
        env = cocotb_environment(SHELL_TOP, _TEST_MODULE, files.folder)
        env[JOB_VARIABLE] = str(files.python_job)
        look = None if watch is None else (lambda: watch(read_status(files.status)))
        command = [str(simulator.binary), f"+job={files.job}", *self._plusargs]
        run_simulator(command, files.folder, files.log, env, look)
        return read_report(files)
