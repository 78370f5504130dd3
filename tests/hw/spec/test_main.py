"""The derived files in the tree are what the specification gives now."""

import subprocess
import sys
from pathlib import Path

import pytest

from intloom.hw.spec.__main__ import derived_files

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", derived_files())
def test_a_derived_file_is_fresh(name: str):
    assert (ROOT / name).read_text(encoding="utf-8") == derived_files()[name], f"{name} is stale: run `make generated`"


def test_the_command_writes_all_files(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "intloom.hw.spec", tmp_path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    written = {str(p.relative_to(tmp_path)): p.read_text(encoding="utf-8") for p in tmp_path.rglob("*") if p.is_file()}
    assert written == derived_files()
    assert len(done.stdout.splitlines()) == len(written)
