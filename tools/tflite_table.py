"""The table of a folder of TFLite files: each compiled for `base`, run, and compared with LiteRT, byte for byte.

`python -m tools.tflite_table FOLDER` prints a row for every file that runs, and why the others are refused; inputs
are seeded random bytes. It ends with exit code 1 if a byte differs. `--rtl` runs the RTL and not only the golden model,
`--vela` adds Vela's estimates for the Ethos-U85. Without FOLDER it draws the table of docs/tflite.md as
docs/assets/vela.svg.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from pathlib import Path

from intloom.common.atomic_write import write_text
from intloom.common.errors import IntloomError
from intloom.compiler.fold.target import Target
from intloom.compiler.program.program import MemoryTiming
from intloom.flow.bundle import bundle_of
from intloom.flow.compiling import compile_model
from intloom.flow.inputs import read_inputs
from intloom.flow.running import execute, open_backend
from intloom.flow.vela import estimate, peers
from intloom.hw.spec.params import preset

ROOT = Path(__file__).parents[1]
PAGE, CHART = ROOT / "docs/tflite.md", ROOT / "docs/assets/vela.svg"
PRESET = "base"
_CACHE_KIB = 384
_CELLS = 9
HEAD = """\
| file | repository | operators | regions | on the host | bytes compared | cycles | Ethos-U85 |
|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Row:
    """A file that ran."""

    path: Path
    operators: int
    regions: int
    host: int
    """Operators of the file on the host."""
    compared: int
    differing: int
    cycles: int
    """By forecast, or with `--rtl` counted."""
    vela: int | None

    def __str__(self) -> str:
        owner, _, name = self.path.stem.rpartition("__")
        numbers = (self.operators, self.regions, self.host, self.compared, self.cycles)
        cells = [
            name,
            owner.replace("+", "/"),
            *(f"{n:,}" for n in numbers),
            "" if self.vela is None else f"{self.vela:,}",
        ]
        return f"| {' | '.join(cells)} |" + (f" {self.differing:,} DIFFER" if self.differing else "")


def measure(path: Path, *, backend: str = "golden", vela: bool = False, seed: int = 0) -> Row:
    """Compile, run and compare a file.

    Raises
    ------
    IntloomError
        The file is refused, or a run stopped.
    """
    params = preset(PRESET)
    compiled = compile_model(path, params)
    bundle = bundle_of(compiled, path)
    feeds = read_inputs([], compiled.inputs, seed)
    result = execute(bundle, open_backend(backend, bundle), feeds, check=True)
    model = compiled.folded.model
    assert model is not None and model.tflite is not None
    file = model.tflite.file
    host = {a.name for a in compiled.folded.assignments if a.target is Target.HOST}
    ethos = peers(params.rows * params.cols)[-1]
    return Row(
        path=path,
        operators=len(file.operators),
        regions=len(compiled.programs),
        host=sum(file.label(op) in host for op in file.operators),
        compared=sum(c.bytes for c in result.checks),
        differing=sum(c.mismatches for c in result.checks),
        cycles=result.cycles or sum(p.predicted_cycles for p in compiled.programs),
        vela=estimate(path, ethos, MemoryTiming(), _CACHE_KIB).cycles if vela else None,
    )


def table(paths: list[Path], *, backend: str, vela: bool) -> Iterator[tuple[str, int]]:
    """Lines of the table as the files run, each with the number of bytes that differ."""
    yield HEAD, 0
    refused = []
    for path in paths:
        try:
            row = measure(path, backend=backend, vela=vela)
        except IntloomError as error:
            refused.append(f"{path.name}: {error}")
        else:
            yield str(row), row.differing
    yield "", 0
    for line in refused:
        yield line, 0


def chart(text: str) -> str:
    """A point for every row of a table that has both numbers of cycles: Vela's estimate against ours."""
    rows = [line.split("|") for line in text.partition(HEAD)[2].splitlines() if line.count("|") == _CELLS]
    counts = [(int(r[-3].replace(",", "")), int(r[-2].replace(",", ""))) for r in rows if r[-2].strip()]
    side, left, first, last = 420, 50, 9, 27  # powers of two: 512 cycles to 134 million

    def at(cycles: float) -> float:
        return round((side - left) * (log2(cycles) - first) / (last - first), 1)

    box = f'viewBox="0 0 {side + 20} {side + 20}" font-family="sans-serif" font-size="12" fill="#444"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {box}><rect width="100%" height="100%" fill="#fff"/>']
    for cycles, label in ((1e3, "1 k"), (1e4, "10 k"), (1e5, "100 k"), (1e6, "1 M"), (1e7, "10 M"), (1e8, "100 M")):
        x, y = left + at(cycles), side - left - at(cycles)
        parts += [f'<path d="M{x} 0V{side - left}M{left} {y}H{side}" stroke="#ddd"/>']
        parts += [f'<text x="{x}" y="{side - left + 16}" text-anchor="middle">{label}</text>']
        parts += [f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{label}</text>']
    parts += [f'<path d="M{left} {side - left}L{side} 0" stroke="#888" stroke-dasharray="4 4"/>']
    parts += [f'<circle cx="{left + at(a)}" cy="{side - left - at(b)}" r="4" fill="#2460c4"/>' for a, b in counts]
    parts += [f'<text x="{left}" y="{side - 4}">cycles of Intloom, base; on the dashed line both are equal</text>']
    parts += [f'<text x="{left + 6}" y="14">Vela\'s estimate for the Ethos-U85, 256 multipliers</text></svg>', ""]
    return "\n".join(parts)


def main() -> int:
    """Print the table of a folder, or draw that of the manual; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rtl", action="store_true")
    parser.add_argument("--vela", action="store_true")
    given = parser.parse_args()
    if given.folder is None:
        write_text(CHART, chart(PAGE.read_text(encoding="utf-8")))
        return 0
    differing = 0
    paths = sorted(given.folder.glob("*.tflite"))
    for line, count in table(paths, backend="rtl" if given.rtl else "golden", vela=given.vela):
        print(line, flush=True)
        differing += count
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
