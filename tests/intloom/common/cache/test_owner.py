"""Whose folder may be a cache, and what is never deleted in it."""

import os
from pathlib import Path

import pytest

from intloom.common.cache.housekeeping import clear
from intloom.common.cache_folder import TAG, cache_folder
from intloom.common.errors import DiskError


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_cache_of_another_user_is_refused(chosen: Path, monkeypatch: pytest.MonkeyPatch):
    cache_folder()
    if os.geteuid() == 0:
        os.chown(chosen, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(DiskError, match="must belong to the user who runs Intloom"):
        cache_folder()


def test_a_cache_that_everybody_may_write_is_refused(chosen: Path):
    cache_folder()
    chosen.chmod(0o777)
    with pytest.raises(DiskError, match="must not be writable by all users"):
        cache_folder()


def test_a_folder_with_other_files_is_neither_used_nor_cleared(chosen: Path):
    own = chosen / "builds" / "mine"
    own.mkdir(parents=True)
    (own / "precious").write_text("years of work")
    with pytest.raises(DiskError, match=f"must be empty or a cache of Intloom with the file {TAG}"):
        cache_folder()
    assert (own / "precious").exists()


def test_an_own_cache_is_used_again_and_keeps_its_mark(chosen: Path):
    assert cache_folder() == cache_folder() == chosen
    (chosen / "builds").mkdir()
    assert cache_folder() == chosen
    clear(chosen)
    assert (chosen / TAG).read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
