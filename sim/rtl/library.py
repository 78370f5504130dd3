"""The library: one object file with all C++ that does not depend on the simulated design.

It contains Verilator's library and the testbench environment, and is compiled once for all simulators with equal flags.
That takes longer than to compile the model of a small accelerator.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path

from intloom.common.cache.store import Kind, cached_file
from intloom.sim.rtl.build_steps import (
    PREFIX,
    build_environment,
    made_without_spaces,
    make_command,
    run_logged,
    verilate_command,
)
from intloom.sim.rtl.joined_sources import library_sources
from intloom.sim.rtl.own_sources import ENVIRONMENT, FASTEST, SOURCES, processor_hash, sources_hash
from intloom.sim.rtl.toolchain import Toolchain

LIBRARY = "library.o"
_STUB = """module stub;
  import "DPI-C" function void called();
  initial begin
    {delay} called();
  end
endmodule
"""
"""A design with a call into C and, where it is allowed, a delay: so the library has all that the benches need."""
_RULES = """include {prefix}.mk
library.o: verilator.o environment.o
	$(LINK) -r -nostdlib -o $@ $^
verilator.o: verilator.cpp
	$(OBJCACHE) $(CXX) $(OPT_FAST) $(CXXFLAGS) $(CPPFLAGS) -c -o $@ $<
environment.o: environment.cpp
	$(OBJCACHE) $(CXX) {fastest} $(CXXFLAGS) $(CPPFLAGS) -c -o $@ $<
"""
_OF_THE_DESIGN = ("-D", "--public")
"""How flags begin that change only the model."""
_RANDOM = ("--x-assign", "--x-initial")
"""Flags with a value that change only the model."""
_INTERFACE = "--vpi"
"""Adds the interface for cocotb. Every library has it, so that benches with and without cocotb share one."""
_OPTIMIZE = "-Og"
"""Compiler flags of Verilator's part. At -O0 it takes 10 % of a simulation; -O1 takes 3 s longer to compile."""
_running: ContextVar[tuple[str, Future[Path]] | None] = ContextVar("_running", default=None)
"""Key and result of the library that is compiled in an enclosing block."""


class CancelledBuildError(Exception):
    """The build that needs the library has failed or was interrupted."""


@contextmanager
def library_ahead(flags: Sequence[str], tools: Toolchain) -> Iterator[Callable[[], Path]]:
    """Compile the library, if it is not cached, while the block runs; the function waits for its path.

    A block in such a block with equal flags waits for the same library.
    """
    outer, key = _running.get(), _key(flags, tools)
    if outer is not None and outer[0] == key:
        yield outer[1].result
        return
    cancelled = threading.Event()

    def check() -> None:
        if cancelled.is_set():
            raise CancelledBuildError

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(library, flags, tools, check)
        token = _running.set((key, future))
        try:
            yield future.result
        except BaseException:
            cancelled.set()
            raise
        finally:
            _running.reset(token)


def library(flags: Sequence[str], tools: Toolchain, watch: Callable[[], None] | None = None) -> Path:
    """The object file for simulators with these flags of Verilator, from the cache or compiled now."""
    shaping, stub = _shaping(flags), _stub(flags)

    def make(work: Path) -> Path:
        env, objects = build_environment(work, tools), work / "obj"
        (work / "stub.sv").write_text(stub, encoding="utf-8")
        run_logged([*verilate_command(work, tools, "stub"), *shaping, str(work / "stub.sv")], work, env, watch)
        # Its first file sets macros that headers of the others must not see.
        _write(objects / "verilator.cpp", "<verilated.h>", *(f"<{name}>" for name in library_sources(objects)))
        _write(objects / "environment.cpp", *(f'"{SOURCES / name}"' for name in ENVIRONMENT))
        (objects / "library.mk").write_text(_RULES.format(prefix=PREFIX, fastest=FASTEST), encoding="utf-8")
        # One file after the other: elaboration or Verilator uses another core meanwhile.
        run_logged([*make_command(work, tools, "library.mk", _OPTIMIZE), "-j1", LIBRARY], work, env, watch)
        return objects / LIBRARY

    made = partial(made_without_spaces, make)
    return cached_file(Kind.LIBRARY, _key(flags, tools), made, detail="Verilator's library").path


def _key(flags: Sequence[str], tools: Toolchain) -> str:
    command = make_command(Path(), tools, "", _OPTIMIZE)
    settings = [_shaping(flags), _stub(flags), _RULES, FASTEST, command, tools.versions]
    settings += [sources_hash(), processor_hash()]
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:24]


def _write(file: Path, *included: str) -> None:
    file.write_text("".join(f"#include {name}\n" for name in included), encoding="utf-8")


def _stub(flags: Sequence[str]) -> str:
    return _STUB.format(delay="#1" if "--timing" in flags else "")


def _shaping(flags: Sequence[str]) -> list[str]:
    """The flags that may change the library."""
    found, values = [_INTERFACE], iter(flags)
    for flag in values:
        if flag in _RANDOM:
            next(values)
        elif flag != _INTERFACE and not flag.startswith(_OF_THE_DESIGN):
            found.append(flag)
    return found
