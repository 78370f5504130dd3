"""The cache: keyed by content, atomic, and never trusting an altered entry."""

import multiprocessing

import pytest

from intloom.common.cache.models import ModelCache, Recipe
from intloom.common.errors import DiskError

RECIPE = Recipe("ab" * 32, "preprocess", {"optimizer": "onnxslim"}, {"onnx": "1"})


def test_what_goes_in_comes_out(tmp_path):
    cache = ModelCache(tmp_path)
    assert cache.get(RECIPE) is None
    cache.put(RECIPE, b"model", 1.5)
    path, record = cache.get(RECIPE)
    assert path.read_bytes() == b"model"
    assert record.seconds == 1.5


@pytest.mark.parametrize(
    "other",
    [
        Recipe("cd" * 32, RECIPE.step, RECIPE.options, RECIPE.versions),
        Recipe(RECIPE.source, "other", RECIPE.options, RECIPE.versions),
        Recipe(RECIPE.source, RECIPE.step, {"optimizer": "none"}, RECIPE.versions),
        Recipe(RECIPE.source, RECIPE.step, RECIPE.options, {"onnx": "2"}),
    ],
)
def test_every_ingredient_is_part_of_the_key(tmp_path, other):
    cache = ModelCache(tmp_path)
    cache.put(RECIPE, b"model", 1.0)
    assert cache.get(other) is None


@pytest.mark.parametrize("damage", ["flip", "truncate", "record", "missing"])
def test_an_altered_entry_is_removed(tmp_path, damage, caplog):
    cache = ModelCache(tmp_path)
    path = cache.put(RECIPE, b"model", 1.0)
    if damage == "flip":
        path.write_bytes(b"mOdel")
    elif damage == "truncate":
        path.write_bytes(b"mod")
    elif damage == "record":
        (path.parent / "record.json").write_text("{")
    else:
        path.unlink()
    assert cache.get(RECIPE) is None
    assert "altered" in caplog.text
    assert not path.parent.exists()
    cache.put(RECIPE, b"model", 1.0)
    assert cache.get(RECIPE)[0].read_bytes() == b"model"


def put_often(folder):
    cache = ModelCache(folder)
    for _ in range(50):
        cache.put(RECIPE, b"model" * 1000, 1.0)
        found = cache.get(RECIPE)
        assert found is not None
        assert found[0].read_bytes() == b"model" * 1000


def test_two_processes_write_the_same_entry_at_once(tmp_path):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=put_often, args=(tmp_path,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [w.exitcode for w in workers] == [0, 0]
    assert [p.name for p in tmp_path.iterdir()] == [RECIPE.key]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(DiskError, match="--cache"):
        ModelCache(file / "cache").put(RECIPE, b"model", 1.0)
