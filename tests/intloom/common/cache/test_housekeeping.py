"""All cache entries are listed with their size, and clearing keeps entries that are in use."""

import hashlib
import json
import multiprocessing
import os

import pytest

from intloom.cli import main
from intloom.common.atomic_write import write_bytes
from intloom.common.cache.builds import cached_build, recorded
from intloom.common.cache.housekeeping import Kind, clear, items
from intloom.common.cache.models import ModelCache, Recipe
from intloom.common.cache_folder import TAG
from intloom.sim.rtl.build import cached
from intloom.sim.rtl.library import LIBRARY


def recipe(number):
    return Recipe(f"{number:064x}", "preprocess", {"optimizer": "onnxslim"}, {"onnx": "1"})


def make_binary(work, log):
    log.write_text("built")
    (work / "out").write_bytes(b"binary" * 100)
    return work / "out"


@pytest.fixture
def home(cache_folder):
    """A cache with one entry of each kind, and what killed processes left."""
    cache_folder.mkdir()
    ModelCache().put(recipe(1), b"model" * 1000, 1.5)
    write_bytes(cache_folder / "verilog" / "0123456789ab-cd.v", b"module" * 50)
    write_bytes(cache_folder / "forecasts" / "0123-cd.json", b"{}")
    write_bytes(cache_folder / "results" / "ab.npz", b"result")
    cached("fast-0123", make_binary)
    cached_build("library-0123", LIBRARY, make_binary)
    (cache_folder / "builds" / ".fast-4567.random" / "obj").mkdir(parents=True)
    (cache_folder / "builds" / ".fast-4567.random" / "obj" / "x.o").write_bytes(b"half")
    (cache_folder / "models" / ".making-x").mkdir()
    return cache_folder


def test_every_kind_is_listed_with_its_size(home, capsys):
    found = {(i.kind, i.finished): i for i in items(home)}
    assert set(found) == {(k, True) for k in Kind} | {(Kind.SIMULATOR, False), (Kind.MODEL, False)}
    assert found[Kind.SIMULATOR, True].size > 600
    assert found[Kind.VERILOG, True].size == 300
    assert main(["cache", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert sum(i["size"] for i in listed) == sum(
        p.stat().st_size for p in home.rglob("*") if p.is_file() and p.name != TAG
    )
    assert main(["cache", "list", "--kind", "result"]) == 0
    assert capsys.readouterr().err.strip() == "1 result 0.0 MB; 0.0 MB in total"


def test_a_sum_of_several_libraries(home, capsys):
    cached_build("library-4567", LIBRARY, make_binary)
    assert main(["cache", "list", "--kind", "library"]) == 0
    assert capsys.readouterr().err.splitlines()[-1].startswith("2 libraries 0.0 MB")


def test_every_build_has_a_recorded_checksum(home):
    files = [recorded(i.path) for i in items(home) if i.finished and i.kind in (Kind.SIMULATOR, Kind.LIBRARY)]
    assert [f.name for f, _ in files] == ["simulator", LIBRARY]
    assert all(hashlib.sha256(f.read_bytes()).hexdigest() == checksum for f, checksum in files)
    files[0][0].with_name("simulator.sha256").unlink()
    assert recorded(files[0][0].parent) is None


def test_clear_removes_everything_but_what_is_not_the_caches(home, capsys):
    (home / "mine").write_text("keep")
    (home / "models" / "mine").mkdir()
    assert main(["cache", "clear"]) == 0
    assert "6 entries removed" in capsys.readouterr().err
    assert not items(home)
    left = {p.relative_to(home).as_posix() for p in home.rglob("*") if p.suffix != ".lock"}
    assert left == {TAG, "mine", "models", "models/mine", "builds", "verilog", "results", "forecasts", "temporary"}


def test_one_kind_alone(home):
    assert clear(home, frozenset({Kind.SIMULATOR})).entries == 1
    assert {i.kind for i in items(home)} == set(Kind) - {Kind.SIMULATOR}


def use(home, ready, finish):
    os.environ["INTLOOM_CACHE"] = str(home)
    assert ModelCache().get(recipe(1)) is not None
    assert cached("fast-0123", make_binary).cached
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
        assert (done.entries, done.in_use) == (4, 2)
        assert {i.kind for i in items(home)} == {Kind.MODEL, Kind.SIMULATOR}
    finally:
        finish.set()
        user.join(60)
    assert clear(home).entries == 2
    assert not items(home)


def work(home, number):
    os.environ["INTLOOM_CACHE"] = str(home)
    for k in range(40):
        path = ModelCache().put(recipe(k % 4), b"model" * 1000, 1.0)
        assert path.read_bytes() == b"model" * 1000
        made = cached(f"fast-{k % 3}", make_binary)
        assert made.binary.read_bytes() == b"binary" * 100
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


def test_an_altered_simulator_is_rebuilt(home, caplog):
    made = cached("fast-0123", make_binary)
    assert made.cached
    made.binary.write_bytes(b"binarY" * 100)
    again = cached("fast-0123", make_binary)
    assert not again.cached
    assert again.binary.read_bytes() == b"binary" * 100
    assert "altered" in caplog.text
