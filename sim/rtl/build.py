"""Building simulators: every binary is cached under a hash of its inputs.

The key covers the Verilog, the bench's own sources, the flags and the versions of the tools.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from intloom.common.cache.builds import cached_build
from intloom.common.errors import EnvironmentFault, SimulationError
from intloom.sim.rtl.process import kill_group, killed_with_parent
from intloom.sim.rtl.toolchain import Toolchain, toolchain

BINARY = "simulator"
SOURCES = Path(__file__).parent / "csrc"
MAKE_JOBS = 2
FASTEST = "-O3 -march=native"
"""Compiler flags for simulators that run long."""
_LOG_LINES = 12
_WATCH_SECONDS = 0.3


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """What to build: generated sources by file name, C++ sources of `csrc` by name, and flags."""

    name: str
    top: str
    generated: Mapping[str, str]
    cpp: tuple[str, ...]
    verilator_flags: tuple[str, ...] = ()
    cxx_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    optimize: str = FASTEST
    """Compiler flags of the generated model's hot code."""

    def key(self, tools: Toolchain) -> str:
        """Hash of everything that can change the binary."""
        parts = [self.name, self.top, dict(self.generated), self.cpp, self.verilator_flags, self.cxx_flags]
        # The processor's features are part of the key, since a cache folder may be shared by machines and FASTEST
        # uses -march=native.
        parts += [self.link_flags, self.optimize, sources_hash(), tools.versions, _machine()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Build:
    """A simulator that is ready to run."""

    binary: Path
    seconds: float
    cached: bool
    key: str = field(default="")


@lru_cache(maxsize=1)
def sources_hash() -> str:
    """Hash of the benches' own C++."""
    own = {p.name: p.read_text(encoding="utf-8") for p in sorted(SOURCES.iterdir())}
    return hashlib.sha256(json.dumps(own).encode()).hexdigest()


@lru_cache(maxsize=1)
def _machine() -> str:
    """What -march=native depends on."""
    info = Path("/proc/cpuinfo")
    flags = [line for line in info.read_text().splitlines() if line.startswith("flags")][:1] if info.exists() else []
    return hashlib.sha256("".join(flags).encode()).hexdigest()


BuildWatch = Callable[[int, int], None]
"""Called with steps done and steps in all while a simulator is built."""


def build(plan: BuildPlan, watch: BuildWatch | None = None) -> Build:
    """The simulator of `plan`, from the cache or built now; `watch` gets the progress of the build.

    Raises
    ------
    EnvironmentFault
        A tool is missing.
    SimulationError
        Verilator or the compiler refused the sources; the message ends with the log's last lines.
    """
    tools = toolchain()
    return cached(f"{plan.name}-{plan.key(tools)}", lambda work, log: _verilate(plan, tools, work, log, watch))


def cached(key: str, make: Callable[[Path, Path], Path]) -> Build:
    """The build called `key`, from the cache or made now by `make(work folder, log file)`, which gives the binary."""
    start = time.monotonic()
    binary, was_cached = cached_build(key, BINARY, make)
    return Build(binary, 0.0 if was_cached else time.monotonic() - start, was_cached, key)


def _verilate(plan: BuildPlan, tools: Toolchain, work: Path, log: Path, watch: BuildWatch | None) -> Path:
    for file, text in plan.generated.items():
        (work / file).write_text(text, encoding="utf-8")
    env = tools.verilator.environment()
    # Without these ccache refuses files that use the precompiled header, and misses in every new build folder.
    env |= {"CCACHE_SLOPPINESS": "pch_defines,time_macros", "CCACHE_BASEDIR": str(work), "CCACHE_NOHASHDIR": "1"}
    # Steps in all are not known before Verilator has written its makefile.
    tell = watch or (lambda _done, _all: None)
    tell(0, 1)
    run_logged(_verilate_command(work, plan, tools), work, env, log)
    command, objects = _make_command(work, plan, tools), work / "obj"
    # Verilation and linking are a step each, like every file that is compiled between them.
    steps = 2 + _compilations(command, work, env)
    run_logged(command, work, env, log, lambda: tell(1 + sum(1 for _ in objects.glob("*.o")), steps))
    tell(steps, steps)
    return objects / "Vtop"


def _compilations(make: list[str], work: Path, env: Mapping[str, str]) -> int:
    """How many files make is going to compile."""
    planned = subprocess.run([*make, "-n"], cwd=work, env=dict(env), capture_output=True, text=True, check=False)
    return len(re.findall(r" -c -o \S+\.o ", planned.stdout))


def _verilate_command(work: Path, plan: BuildPlan, tools: Toolchain) -> list[str]:
    hdl = [n for n in plan.generated if n.endswith((".v", ".sv", ".vlt"))]
    # The configuration file must come first: it names what the sources then define.
    hdl.sort(key=lambda n: not n.endswith(".vlt"))
    include = f"-I{SOURCES} -I{work} " + " ".join(plan.cxx_flags)
    command = ["perl", str(tools.verilator.script), "-cc", "--exe", "-Mdir", str(work / "obj"), "--prefix", "Vtop"]
    command += [
        "--top-module",
        plan.top,
        "-O3",
        # Amaranth initializes every register, so unknown values need no random replacement.
        "--x-assign",
        "fast",
        "--x-initial",
        "fast",
        "-Wno-fatal",
        "-Wno-lint",
        "-Wno-style",
    ]
    command += ["--timescale", "1ns/1ns", "-CFLAGS", include, *plan.verilator_flags]
    if plan.link_flags:
        command += ["-LDFLAGS", " ".join(plan.link_flags)]
    return (
        command + [str(SOURCES / n) if (SOURCES / n).exists() else n for n in plan.cpp] + [str(work / n) for n in hdl]
    )


def _make_command(work: Path, plan: BuildPlan, tools: Toolchain) -> list[str]:
    variables = {
        **tools.verilator.make_variables(),
        "CXX": tools.compiler,
        "LINK": tools.compiler,
        "OPT_FAST": plan.optimize,
        "OPT_SLOW": "-O0",  # runs once; at -O1 it would be most of the build
        "OPT_GLOBAL": "-O2",
    }
    if tools.ccache:
        variables["OBJCACHE"] = tools.ccache
    command = [tools.make, "-j", str(MAKE_JOBS), "-C", str(work / "obj"), "-f", "Vtop.mk", "Vtop"]
    return command + [f"{name}={value}" for name, value in variables.items()]


def run_logged(
    command: list[str], work: Path, env: Mapping[str, str], log: Path, watch: Callable[[], None] | None = None
) -> None:
    """Run one step of a build; `watch` is called a few times a second.

    Raises `SimulationError` with the end of its log when it fails.
    """
    if shutil.which(command[0]) is None:
        raise EnvironmentFault(f"cannot run {command[0]}: it is missing or not executable; see `intloom doctor`")
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
