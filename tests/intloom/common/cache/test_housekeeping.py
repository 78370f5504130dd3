"""All cache entries are listed with their size, and clearing keeps entries that are in use."""

import json
import multiprocessing
import os
import shutil

import pytest

from intloom.cli import main
from intloom.common.cache.housekeeping import clear, items
from intloom.common.cache.store import Kind, cached_file
from intloom.common.cache_folder import TAG


def stored(kind, key="0123", content=b"content" * 100):
    """An entry, found or made."""

    def make(work):
        (work / "file").write_bytes(content)
        return work / "file"

    return cached_file(kind, key, make, detail=f"some {kind}")


@pytest.fixture
def home(cache_folder):
    """A cache with one entry of each kind, and what a killed process left."""
    cache_folder.mkdir()
    for kind in Kind:
        stored(kind)
    (cache_folder / "builds" / ".fast-4567.random" / "obj").mkdir(parents=True)
    (cache_folder / "builds" / ".fast-4567.random" / "obj" / "x.o").write_bytes(b"half")
    return cache_folder


def test_an_entry_that_vanishes_while_it_is_listed_is_left_out(home, monkeypatch):
    entry, scan = Kind.MODEL.folder(home) / "0123", os.scandir

    def vanishing(path="."):
        if path == entry:
            monkeypatch.undo()
            shutil.rmtree(entry)
        return scan(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    listed = items(home)
    assert not entry.exists()
    assert {i.kind for i in listed} == {*Kind} - {Kind.MODEL}


def test_every_kind_is_listed_with_its_size(home, capsys):
    found = {(i.kind, i.finished): i for i in items(home)}
    assert set(found) == {(k, True) for k in Kind} | {(Kind.SIMULATOR, False)}
    assert found[Kind.SIMULATOR, True].size > 700
    assert found[Kind.SIMULATOR, True].detail == "some simulator"
    assert main(["cache", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert sum(i["size"] for i in listed) == sum(
        p.stat().st_size for p in home.rglob("*") if p.is_file() and p.name != TAG
    )
    assert main(["cache", "list", "--kind", "result"]) == 0
    assert capsys.readouterr().err.strip() == "1 result 0.0 MB; 0.0 MB in total"


def test_a_sum_of_several_libraries(home, capsys):
    stored(Kind.LIBRARY, "4567")
    assert main(["cache", "list", "--kind", "library"]) == 0
    assert capsys.readouterr().err.splitlines()[-1].startswith("2 libraries 0.0 MB")


def test_clear_removes_everything_but_what_is_not_the_caches(home, capsys):
    (home / "mine").write_text("keep")
    (home / "models" / "mine").mkdir()
    assert main(["cache", "clear"]) == 0
    assert f"{len(Kind)} entries removed" in capsys.readouterr().err
    assert not items(home)
    left = {p.relative_to(home).as_posix() for p in home.rglob("*") if p.suffix != ".lock"}
    folders = {kind.folder(home).name for kind in Kind}
    assert left == {TAG, "mine", "models/mine", "temporary", *folders}


def test_one_kind_alone(home):
    assert clear(home, frozenset({Kind.SIMULATOR})).entries == 1
    assert {i.kind for i in items(home)} == set(Kind) - {Kind.SIMULATOR}


def use(home, ready, finish):
    os.environ["INTLOOM_CACHE"] = str(home)
    assert stored(Kind.MODEL).cached
    assert stored(Kind.SIMULATOR).cached
    ready.set()
    assert finish.wait(60)


def test_what_another_process_uses_stays(home):
    context = multiprocessing.get_context("spawn")
    ready, finish = context.Event(), context.Event()
    user = context.Process(target=use, args=(home, ready, finish))
    user.start()
    try:
        assert ready.wait(60)
        done = clear(home)
        assert (done.entries, done.in_use) == (len(Kind) - 2, 2)
        assert {i.kind for i in items(home)} == {Kind.MODEL, Kind.SIMULATOR}
    finally:
        finish.set()
        user.join(60)
    assert clear(home).entries == 2
    assert not items(home)


def work(home, number):
    os.environ["INTLOOM_CACHE"] = str(home)
    for k in range(40):
        for kind in (Kind.MODEL, Kind.SIMULATOR):
            content = f"{kind} {k % 4}".encode() * 1000
            assert stored(kind, f"key{k % 4}", content).path.read_bytes() == content
        if number:
            clear(home)


def test_writers_and_clearers_do_not_disturb_each_other(cache_folder):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(cache_folder, n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [w.exitcode for w in workers] == [0, 0, 0]
