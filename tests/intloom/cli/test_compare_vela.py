"""`intloom compare-vela`: the same file and memory in Vela, whose numbers stay its own."""

import json

import pytest

from intloom.cli import main
from intloom.common.errors import UsageError
from intloom.compiler.program.program import MemoryTiming
from intloom.flow.vela import Ethos, estimate, peers
from tests.support.tflite_maker import tflite_bytes


def test_peers_have_the_nearest_number_of_multipliers():
    assert [(p.name, p.multipliers) for p in peers(256)] == [
        ("ethos-u55-256", 256),
        ("ethos-u65-256", 256),
        ("ethos-u85-256", 256),
    ]
    assert [p.multipliers for p in peers(16)] == [32, 256, 128]


@pytest.mark.slow
def test_table_of_a_file(tmp_path, capsys):
    path = tmp_path / "network.tflite"
    path.write_bytes(tflite_bytes("network"))
    assert main(["compare-vela", str(path), "--preset", "nano", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["hardware"] for r in rows] == ["nano", "ethos-u55-32", "ethos-u65-256", "ethos-u85-128"]
    assert all(r["cycles"] > 0 and 0 < r["use"] < 1 for r in rows)


@pytest.mark.slow
def test_a_file_without_products_uses_no_multiplier(tmp_path, capsys):
    path = tmp_path / "table.tflite"
    path.write_bytes(tflite_bytes("LOGISTIC"))
    assert main(["compare-vela", str(path), "--preset", "nano", "--json"]) == 0
    ours, *_ = json.loads(capsys.readouterr().out)["rows"]
    assert (ours["multipliers"], ours["use"]) == (16, 0.0) and ours["cycles"] > 0


def test_slower_memory_reaches_vela(tmp_path):
    path = tmp_path / "network.tflite"
    path.write_bytes(tflite_bytes("network"))
    ethos = Ethos("ethos-u85-256", 256)
    fast, slow = (estimate(path, ethos, MemoryTiming(bandwidth=b), 384).cycles for b in (1.0, 0.125))
    assert slow > fast


def test_what_vela_refuses_is_one_line(tmp_path):
    path = tmp_path / "broken.tflite"
    path.write_bytes(tflite_bytes("network")[:400])
    with pytest.raises(UsageError, match="Vela does not compile"):
        estimate(path, Ethos("ethos-u85-256", 256), MemoryTiming(), 384)
