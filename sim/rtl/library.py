"""Verilator's C++ library as one object file, compiled once for all simulators with equal flags.

It takes longer to compile than the model of a small accelerator.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from intloom.common.cache.builds import cached_build
from intloom.common.cache.housekeeping import Kind
from intloom.sim.rtl.build_steps import PREFIX, build_environment, make_command, run_logged, verilate_command
from intloom.sim.rtl.joined_sources import library_sources
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
library.o: library.cpp
	$(OBJCACHE) $(CXX) $(OPT_GLOBAL) $(CXXFLAGS) $(CPPFLAGS) -c -o $@ $<
"""
_OF_THE_DESIGN = ("-D", "--public")
"""How flags begin that change only the model."""
_RANDOM = ("--x-assign", "--x-initial")
"""Flags with a value that change only the model."""


class CancelledBuildError(Exception):
    """The build that needs the library has failed or was interrupted."""


@contextmanager
def library_ahead(flags: Sequence[str], tools: Toolchain) -> Iterator[Callable[[], Path]]:
    """Compile the library, if it is not cached, beside what the block does; the function waits for its path."""
    cancelled = threading.Event()

    def check() -> None:
        if cancelled.is_set():
            raise CancelledBuildError

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(library, flags, tools, check)
        try:
            yield future.result
        except BaseException:
            cancelled.set()
            raise


def library(flags: Sequence[str], tools: Toolchain, watch: Callable[[], None] | None = None) -> Path:
    """The object file for simulators with these flags of Verilator, from the cache or compiled now."""
    shaping = _shaping(flags)
    stub = _STUB.format(delay="#1" if "--timing" in shaping else "")
    settings = [shaping, stub, _RULES, make_command(Path(), tools, "", ""), tools.versions]
    key = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:24]

    def make(work: Path, log: Path) -> Path:
        env, objects = build_environment(work, tools), work / "obj"
        (work / "stub.sv").write_text(stub, encoding="utf-8")
        run_logged([*verilate_command(work, tools, "stub"), *shaping, str(work / "stub.sv")], work, env, log, watch)
        # Its first file sets macros that headers of the others must not see.
        text = "#include <verilated.h>\n" + "".join(f"#include <{name}>\n" for name in library_sources(objects))
        (objects / "library.cpp").write_text(text, encoding="utf-8")
        (objects / "library.mk").write_text(_RULES.format(prefix=PREFIX), encoding="utf-8")
        run_logged([*make_command(work, tools, "library.mk", ""), LIBRARY], work, env, log, watch)
        return objects / LIBRARY

    path, _ = cached_build(f"{Kind.LIBRARY}-{key}", LIBRARY, make)
    return path


def _shaping(flags: Sequence[str]) -> list[str]:
    """The flags that may change the library."""
    found, values = [], iter(flags)
    for flag in values:
        if flag in _RANDOM:
            next(values)
        elif not flag.startswith(_OF_THE_DESIGN):
            found.append(flag)
    return found
