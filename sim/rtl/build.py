"""Building simulators: every binary is cached under a hash of its inputs.

The key covers the Verilog, the bench's own sources, the flags and the versions of the tools.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from intloom.common.cache.store import Kind, cached_file
from intloom.sim.rtl.build_steps import (
    MAKE_JOBS,
    build_environment,
    made_without_spaces,
    make_command,
    run_logged,
    verilate_command,
)
from intloom.sim.rtl.joined_sources import MAKEFILE, join_sources
from intloom.sim.rtl.library import LIBRARY, library_ahead
from intloom.sim.rtl.own_sources import FASTEST, SOURCES, processor_hash, sources_hash
from intloom.sim.rtl.toolchain import Toolchain, toolchain

BINARY = "simulator"


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
        parts += [self.link_flags, self.optimize, sources_hash(), tools.versions, processor_hash()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Build:
    """A simulator that is ready to run."""

    binary: Path
    seconds: float
    cached: bool
    key: str = field(default="")


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
    return cached(f"{plan.name}-{plan.key(tools)}", lambda work: _verilate(plan, tools, work, watch))


def cached(key: str, make: Callable[[Path], Path]) -> Build:
    """The build called `key`, from the cache or made now by `make(work folder)`, which gives the binary."""
    detail = f"{key.partition('-')[0]} bench"
    entry = cached_file(Kind.SIMULATOR, key, partial(made_without_spaces, make), detail=detail)
    return Build(entry.path, 0.0 if entry.cached else entry.seconds, entry.cached, key)


def _verilate(plan: BuildPlan, tools: Toolchain, work: Path, watch: BuildWatch | None) -> Path:
    for file, text in plan.generated.items():
        (work / file).write_text(text, encoding="utf-8")
    env, objects = build_environment(work, tools), work / "obj"
    # Steps in all are not known before Verilator has written its sources.
    tell = watch or (lambda _done, _all: None)
    tell(0, 1)
    with library_ahead(plan.verilator_flags, tools) as library:
        run_logged(_verilate_command(work, plan, tools), work, env)
        own = [SOURCES / name if (SOURCES / name).exists() else work / name for name in plan.cpp]
        parts = join_sources(objects, own, MAKE_JOBS)
        # Verilation, the library and linking are a step each, like every file that is compiled between them.
        steps = len(parts) + 3
        make = make_command(work, tools, MAKEFILE, plan.optimize, tools.model_compiler(plan.verilator_flags))
        run_logged([*make, "parts"], work, env, lambda: tell(1 + _existing(objects, parts), steps))
        # Copied, because a path with spaces would be several words for make.
        shutil.copy2(library(), objects / LIBRARY)
        run_logged([*make, BINARY, f"LIBRARY={LIBRARY}"], work, env)
    tell(steps, steps)
    return objects / BINARY


def _existing(folder: Path, names: list[str]) -> int:
    return sum((folder / name).exists() for name in names)


def _verilate_command(work: Path, plan: BuildPlan, tools: Toolchain) -> list[str]:
    hdl = [n for n in plan.generated if n.endswith((".v", ".sv", ".vlt"))]
    # The configuration file must come first: it names what the sources then define.
    hdl.sort(key=lambda n: not n.endswith(".vlt"))
    include = f"-I{SOURCES} -I{work} " + " ".join(plan.cxx_flags)
    command = [*verilate_command(work, tools, plan.top), *plan.verilator_flags, "-CFLAGS", include]
    if plan.link_flags:
        command += ["-LDFLAGS", " ".join(plan.link_flags)]
    return command + [str(work / n) for n in hdl]
