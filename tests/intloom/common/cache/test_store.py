"""The cache: entries are made once, appear complete, and are never trusted when altered."""

import multiprocessing
import os

import pytest

from intloom.common.cache.housekeeping import items
from intloom.common.cache.store import Kind, cached_bytes, cached_file, cached_text, key_of, read_record
from intloom.common.errors import DiskError
from intloom.flow.networks import quantized_network


def made(home, content=b"model"):
    """Store an entry, or find it."""

    def make(work):
        (work / "model.onnx").write_bytes(content)
        return work / "model.onnx"

    return cached_file(Kind.MODEL, "key", make, detail="a model, of two words", home=home)


def test_what_goes_in_comes_out(tmp_path):
    first, again = made(tmp_path), made(tmp_path, b"other")
    assert (first.cached, again.cached) == (False, True)
    assert first.path == again.path
    assert again.path.read_bytes() == b"model"
    record = read_record(again.path.parent)
    assert record.intact()
    assert (record.file, record.detail) == (again.path, "a model, of two words")
    assert again.seconds == record.seconds == pytest.approx(first.seconds, abs=1e-3)


def test_every_part_of_a_key_counts():
    parts = ("preprocess", {"optimizer": "onnxslim"}, {"onnx": "1"})
    others = [("other", *parts[1:]), (parts[0], {"optimizer": "none"}, parts[2]), (*parts[:2], {"onnx": "2"})]
    assert len({key_of(*p) for p in (parts, *others)}) == 4


@pytest.mark.parametrize("damage", ["flip", "truncate", "record", "missing"])
def test_an_altered_entry_is_made_again(tmp_path, damage, caplog):
    path = made(tmp_path).path
    if damage == "flip":
        path.write_bytes(b"mOdel")
    elif damage == "truncate":
        path.write_bytes(b"mod")
    elif damage == "record":
        path.with_name("model.onnx.sha256").write_bytes(b"\xff")
    else:
        path.unlink()
    assert not made(tmp_path).cached
    assert "altered" in caplog.text
    assert path.read_bytes() == b"model"


def test_a_text_that_cannot_be_made_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        cached_text(Kind.VERILOG, "key", "npu.v", lambda: str(1 / 0))
    assert not items(tmp_path)
    assert cached_text(Kind.VERILOG, "key", "npu.v", lambda: "ü") == "ü"
    assert cached_bytes(Kind.VERILOG, "key", lambda _work: pytest.fail("it is there")) == ("ü".encode(), True)


def quantize_at_once(home, start, queue):
    os.environ["INTLOOM_CACHE"] = str(home)
    start.wait(60)
    queue.put(quantized_network("tiny", 16).read_bytes())


def test_two_processes_quantize_the_same_network_at_once(tmp_path):
    """The one that comes second waits, and both have the model that the first one made."""
    context = multiprocessing.get_context("spawn")
    start, queue = context.Barrier(2), context.Queue()
    workers = [context.Process(target=quantize_at_once, args=(tmp_path, start, queue)) for _ in range(2)]
    for worker in workers:
        worker.start()
    first, second = (queue.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join(60)
    assert first == second
    assert [w.exitcode for w in workers] == [0, 0]
    assert sorted(i.detail.split()[0] for i in items(tmp_path)) == ["preprocess", "zoo"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskError, match="--cache"):
        made(tmp_path / "file" / "cache")
