"""Keep an earlier version's Verilog and workload, for `intloom bench --baseline`.

`python -m tools.baseline COMMIT [PRESET]` writes build/baseline-COMMIT. The sources of the commit generate both, so
that the instructions have the encoding of that version.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from intloom.hw.options import DEFAULT_PRESET
from intloom.sim.bench.baseline import MEMORY, VERILOG, WORKLOAD

ROOT = Path(__file__).parents[1]

_SCRIPT = f"""
import importlib, importlib.util, json, sys
from pathlib import Path

preset, folder = sys.argv[1], Path(sys.argv[2])
# Early versions have their packages at the top.
package = "intloom." if Path("intloom/hw").exists() else ""
load = lambda name: importlib.import_module(package + name)
params = load("hw.spec.params").PRESETS[preset]
compare = load("sim.bench.compare")
program, inputs = load("sim.bench.workload").dense_program(params, blocks=compare._BLOCKS, **compare._LONG)
load("compiler.program.memory").initial_memory(program, inputs).tofile(folder / "{MEMORY}")
numbers = {{
    "word_bytes": params.word_bytes,
    "memory_words": program.memory_words,
    "program_word": program.instructions_at,
    "instructions": len(program.instructions),
}}
(folder / "{WORKLOAD}").write_text(json.dumps(numbers))
(folder / "{VERILOG}").write_text(load("hw.generate").generate_verilog(params))
"""


def keep(commit: str, preset: str, folder: Path) -> None:
    """Write the baseline folder of a commit."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as checkout:
        with tarfile.open(fileobj=io.BytesIO(sources)) as archive:
            archive.extractall(checkout, filter="data")
        command = [sys.executable, "-c", _SCRIPT, preset, str(folder.resolve())]
        subprocess.run(command, cwd=checkout, env={**os.environ, "PYTHONPATH": checkout}, check=True)


if __name__ == "__main__":
    _commit, _preset = (*sys.argv[1:], DEFAULT_PRESET)[:2]
    _folder = ROOT / "build" / f"baseline-{_commit}"
    keep(_commit, _preset, _folder)
    print(f"wrote {_folder}: make bench BASELINE={_folder.relative_to(ROOT)}")
