"""onnxruntime's telemetry is off, unless the user's environment says otherwise."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """\
import intloom
from intloom.compiler.reference import open_session
from intloom.zoo import build

open_session(build("tiny", None).SerializeToString())
"""


def files_written(folder: Path, setting: str | None) -> list[str]:
    """The files that a session leaves in an empty home folder."""
    # onnxruntime 1.31 sends nothing from a CI machine either, which it knows by this variable.
    dropped = ("ORT_DISABLE_TELEMETRY", "PYTHONPYCACHEPREFIX", "CI")
    kept = {k: v for k, v in os.environ.items() if k not in dropped}
    given = {} if setting is None else {"ORT_DISABLE_TELEMETRY": setting}
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", SCRIPT], env={**kept, **home, **given}, check=True, timeout=120)
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


def test_nothing_is_written_into_the_cache_folder(tmp_path):
    assert files_written(tmp_path, None) == []


def test_a_setting_of_the_user_is_kept(tmp_path):
    assert "deviceid" in files_written(tmp_path, "0")
