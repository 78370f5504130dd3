"""The detailed bench: the same RTL with cocotbext-axi bus models, random stalls, monitors and waves; slow."""

import hashlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from intloom.common.extras import require_extra
from intloom.sim.host.run_program import HostReport
from intloom.sim.rtl.bench import Watch, run_cocotb
from intloom.sim.rtl.build import Build, BuildPlan, BuildWatch, build, cached
from intloom.sim.rtl.build_steps import run_logged
from intloom.sim.rtl.fast import cocotb_link_flags
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.library import library_ahead
from intloom.sim.rtl.ports import TOP, parse_ports
from intloom.sim.rtl.toolchain import icarus, toolchain

_TOP_AND_TEST = (TOP, "intloom.sim.rtl.detailed_test")
_ICARUS_MODULE = "libcocotbvpi_icarus"
WAVES = "dump.fst"


def _cocotb_main() -> str:
    """The main program that cocotb ships for Verilator."""
    require_extra("sim", "cocotb_tools.config", "cocotbext.axi")
    import cocotb_tools.config

    return str(cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp")


@dataclass(frozen=True, kw_only=True)
class DetailedBench:
    """Every cycle checked, every channel stalled at random: for blocks and small networks.

    cocotb's own main program runs it, clocked from Python.
    """

    name = "detailed"

    waves: bool = False
    """Leave the waves of the whole run as dump.fst in the run's folder."""

    def logs_results(self, verilog: str) -> bool:
        """Only stored words are logged."""
        return False

    def compiled_ahead(self) -> AbstractContextManager[object]:
        """Compile Verilator's library while the block runs."""
        return library_ahead(self._flags(), toolchain())

    def build(self, verilog: str, watch: BuildWatch | None = None) -> Build:
        """The simulator of this Verilog, from the cache or built now; `watch` gets the progress of the build."""
        ports = "\n".join(f'public_flat_rw -module "{TOP}" -var "{name}"' for name in parse_ports(verilog))
        plan = BuildPlan(
            name="detailed",
            top=TOP,
            # Verilator cannot optimize a public signal away, so only the ports are public.
            generated={"npu.v": verilog, "visible.vlt": f"`verilator_config\n{ports}\n"},
            cpp=(_cocotb_main(),),
            verilator_flags=self._flags(),
            link_flags=cocotb_link_flags(),
            optimize="-O2",
        )
        return build(plan, watch)

    def run(self, simulator: Build, job: Job, files: RunFiles, watch: Watch | None = None) -> HostReport:
        """Run `job`; the memory file is changed in place; `watch` gets the status several times a second."""
        waves = ["--trace", "--trace-file", str(files.folder / WAVES)] if self.waves else []
        return run_cocotb([str(simulator.binary), *waves], _TOP_AND_TEST, job, files, watch)

    def _flags(self) -> tuple[str, ...]:
        return ("--vpi", "--timing", *(("--trace-fst",) if self.waves else ()))


class IcarusBench:
    """The detailed bench on Icarus Verilog: an independent simulator that checks Verilator on small cases."""

    name = "icarus"

    def logs_results(self, verilog: str) -> bool:
        """Only stored words are logged."""
        return False

    def compiled_ahead(self) -> AbstractContextManager[object]:
        """Nothing: Icarus needs no library."""
        return nullcontext()

    def build(self, verilog: str, watch: BuildWatch | None = None) -> Build:
        """The compiled design, from the cache or compiled now; takes seconds, so `watch` is not called."""
        compiler = icarus()
        key = hashlib.sha256(verilog.encode()).hexdigest()[:24]

        def make(work: Path) -> Path:
            (work / "npu.v").write_text(verilog, encoding="utf-8")
            # The generated Verilog has no `timescale`, and Icarus then assumes 1 s; it accepts +timescale in a
            # command file only.
            (work / "flags").write_text("+timescale+1ns/1ps\n", encoding="utf-8")
            command = [str(compiler), "-g2012", "-s", TOP, "-f", "flags", "-o", "out.vvp", "npu.v"]
            run_logged(command, work, {"PATH": str(compiler.parent)})
            return work / "out.vvp"

        return cached(f"icarus-{key}", make)

    def run(self, simulator: Build, job: Job, files: RunFiles, watch: Watch | None = None) -> HostReport:
        """Run `job`; the memory file is changed in place; `watch` gets the status several times a second."""
        require_extra("sim", "cocotb_tools.config", "cocotbext.axi")
        import cocotb_tools.config

        # Icarus 11 looks for modules by the ending .vpi only.
        module = files.folder / f"{_ICARUS_MODULE}.vpi"
        module.unlink(missing_ok=True)
        module.symlink_to(cocotb_tools.config.libs_dir / f"{_ICARUS_MODULE}.so")
        vvp = icarus().with_name("vvp")
        command = [str(vvp), "-M", str(files.folder), "-m", _ICARUS_MODULE, str(simulator.binary)]
        return run_cocotb(command, _TOP_AND_TEST, job, files, watch, verilator=False)
