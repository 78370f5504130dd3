"""The table of a folder of TFLite files: each compiled for `base`, run, and compared with LiteRT, byte for byte.

`python -m tools.tflite_table FOLDER` prints a row for every file that runs, and what the others are refused with. The
inputs are seeded random bytes. It ends with exit code 1 if a byte differs. `--rtl` runs the RTL instead of the golden
model alone, `--vela` adds the estimates of Vela for the Ethos-U85.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from intloom.common.errors import IntloomError
from intloom.compiler.fold.target import Target
from intloom.compiler.program.program import MemoryTiming
from intloom.flow.bundle import Bundle
from intloom.flow.compiling import compile_model
from intloom.flow.inputs import read_inputs
from intloom.flow.running import execute, open_backend, open_host
from intloom.flow.vela import estimate, peers
from intloom.hw.spec.params import preset

PRESET = "base"
_CACHE_KIB = 384
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
    bundle = Bundle(compiled.programs, path, compiled.folded, compiled.inputs, compiled.outputs)
    feeds = read_inputs([], compiled.inputs, seed)
    result = execute(bundle, open_backend(backend, bundle), feeds, host=open_host(bundle), check=True)
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


def main() -> int:
    """Print the table of a folder; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rtl", action="store_true")
    parser.add_argument("--vela", action="store_true")
    given = parser.parse_args()
    differing = 0
    paths = sorted(given.folder.glob("*.tflite"))
    for line, count in table(paths, backend="rtl" if given.rtl else "golden", vela=given.vela):
        print(line, flush=True)
        differing += count
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
