"""The environment is made where none is, and left alone where it works."""

import sys
from pathlib import Path

import pytest

from tools import make_venv


def test_an_environment_that_works_is_kept(monkeypatch: pytest.MonkeyPatch):
    def create(*arguments: object, **options: object) -> None:
        raise AssertionError("the environment was created again")

    monkeypatch.setattr(make_venv.venv, "create", create)
    make_venv.make_venv(Path(sys.prefix))


def test_an_old_python_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    with pytest.raises(SystemExit, match=r"Python must be 3\.11 or later, not"):
        make_venv.main()


def test_a_folder_that_cannot_be_made_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "venv").touch()
    monkeypatch.setattr(sys, "argv", ["make_venv", str(tmp_path / "venv" / "inside")])
    with pytest.raises(SystemExit, match=r"(?s)cannot make .*apt-get install python3-venv"):
        make_venv.main()
