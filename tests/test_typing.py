"""Types of the package resolve in a checkout, through the links below `intloom/`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = """\
import numpy as np
import intloom
import intloom.onnxruntime as ort
from intloom.hw.spec.params import preset
program = intloom.compile(b"", preset="nano", dims={"batch": 1})
session: intloom.Session = ort.InferenceSession("m.onnx", ort.SessionOptions(), providers=["CPUExecutionProvider"])
height, width = session.get_inputs()[0].shape[2:]
image = np.zeros((1, 3, int(height), int(width)), np.float32)
boxes = intloom.Session(program, backend="golden", check=True).run(None, {session.get_inputs()[0].name: image})[0]
best: float = float(boxes[0, 4:].max())
reveal_type(session)
reveal_type(preset("nano"))
reveal_type(preset("nano").rows)
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_mypy_resolves_types_of_linked_packages_in_a_users_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--follow-imports=silent", script]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'Revealed type is "intloom.session.Session"' in done.stdout
    assert 'Revealed type is "intloom.hw.spec.params.HardwareParams"' in done.stdout
    assert 'Revealed type is "int"' in done.stdout or "builtins.int" in done.stdout


@pytest.mark.parametrize("name", ["hw", "compiler", "sim"])
def test_links_lead_to_the_folders_of_the_repository(name: str) -> None:
    link = ROOT / "intloom" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..", name)
