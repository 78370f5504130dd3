"""The steps of a simulator's build: commands of Verilator and make, and how they run."""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from intloom.common.errors import EnvironmentFault, SimulationError
from intloom.common.temporary_files import temporary_folder
from intloom.sim.rtl.process import kill_group, killed_with_parent
from intloom.sim.rtl.toolchain import Toolchain

PREFIX = "Vtop"
"""How the names of all files begin that Verilator writes."""
MAKE_JOBS = 2
_MALLOC = "glibc.malloc.tcache_count=60000:glibc.malloc.mxfast=0:glibc.malloc.top_pad=134217728"
"""Settings of the C library for Verilator, which allocates millions of small objects: a quarter of its time."""
_LOG_LINES = 12
_WATCH_SECONDS = 0.1


def build_environment(work: Path, tools: Toolchain) -> dict[str, str]:
    """The environment of all steps in the folder `work`."""
    # Without these ccache misses in every new build folder.
    ccache = {"CCACHE_BASEDIR": str(work), "CCACHE_NOHASHDIR": "1"}
    return {**tools.verilator.environment(), **ccache, "GLIBC_TUNABLES": _MALLOC}


def made_without_spaces(make: Callable[[Path], Path], work: Path) -> Path:
    """What `make(work folder)` builds; in a temporary folder if `work` has spaces, which GNU Make refuses."""
    if not any(c.isspace() for c in str(work)):
        return make(work)
    with temporary_folder("intloom-build-") as folder:
        return Path(shutil.copy2(make(folder), work))


def verilate_command(work: Path, tools: Toolchain, top: str) -> list[str]:
    """Verilator's command for the module `top`, without sources; it writes into the folder `obj`."""
    command = ["perl", str(tools.verilator.script), "-cc", "--exe", "-Mdir", str(work / "obj"), "--prefix", PREFIX]
    command += ["--top-module", top, "-O3", "--timescale", "1ns/1ns", "-Wno-fatal", "-Wno-lint", "-Wno-style"]
    # Amaranth initializes every register, so unknown values need no random replacement.
    return [*command, "--x-assign", "fast", "--x-initial", "fast"]


def make_command(work: Path, tools: Toolchain, makefile: str, optimize: str, compiler: str | None = None) -> list[str]:
    """The command of make, without targets; `optimize` are the compiler flags of fast parts."""
    variables = {
        **tools.verilator.make_variables(),
        "CXX": compiler or tools.compiler,
        "LINK": tools.compiler,
        "OPT_FAST": optimize,
        "OPT_SLOW": "-O0",  # runs once; at -O1 it would be most of the build
    }
    if tools.ccache:
        variables["OBJCACHE"] = tools.ccache
    command = [tools.make, "-j", str(MAKE_JOBS), "-C", str(work / "obj"), "-f", makefile]
    return command + [f"{name}={value}" for name, value in variables.items()]


def run_logged(command: list[str], work: Path, env: Mapping[str, str], watch: Callable[[], None] | None = None) -> None:
    """Run one step of a build in `work`; `watch` is called before and several times a second, and ends it if it raises.

    Raises `SimulationError` with the end of its log when it fails.
    """
    if shutil.which(command[0]) is None:
        raise EnvironmentFault(f"cannot run {command[0]}: it is missing or not executable; see `intloom doctor`")
    if watch is not None:
        watch()
    log = work / "build.log"
    with log.open("ab") as out:
        try:
            # A compiler that is killed leaves its temporary files: they go with the work folder.
            surroundings = {**env, "TMPDIR": str(work)}
            process = subprocess.Popen(
                killed_with_parent(command), stdout=out, stderr=out, cwd=work, env=surroundings, start_new_session=True
            )
        except OSError as error:
            raise EnvironmentFault(f"cannot run {command[0]}: {error.strerror}; see `intloom doctor`") from None
        try:
            code = _wait(process, watch)
        except BaseException:
            kill_group(process)
            raise
    if code:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
        raise SimulationError(f"building the simulator failed ({Path(command[0]).name} ended with {code}):\n{tail}")


def _wait(process: subprocess.Popen[bytes], watch: Callable[[], None] | None) -> int:
    while True:
        try:
            return process.wait(None if watch is None else _WATCH_SECONDS)
        except subprocess.TimeoutExpired:
            if watch is not None:
                watch()
