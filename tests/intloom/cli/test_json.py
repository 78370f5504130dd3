"""`--json`: one JSON value on standard output and nothing else, from every command that has a result."""

import json

import pytest

from intloom.cli import main
from intloom.cli.commands import COMMANDS

STEPS = [
    (["zoo", "list"], list),
    (["zoo", "build", "tiny", "-o", "f.onnx"], dict),
    (["preprocess", "f.onnx", "-o", "p.onnx"], dict),
    (["quantize", "f.onnx", "-o", "q.onnx", "--samples", "1"], dict),
    (["inspect", "q.onnx"], dict),
    (["compile", "q.onnx", "--preset", "nano", "-o", "n.loom"], dict),
    (["export", "n.loom", "--bin", "n.bin"], dict),
    (["disasm", "n.loom"], list),
    (["run", "n.loom", "--backend", "isa", "--check", "-o", "run"], dict),
    (["report", "run"], dict),
    (["compare", "run", "run"], dict),
    (["area", "--preset", "nano"], dict),
    (["verilog", "--preset", "nano", "-o", "rtl"], dict),
    (["cache", "list"], list),
    (["cache", "path"], dict),
    (["cache", "clear"], dict),
    (["doctor"], dict),
    (["version"], dict),
]
WITHOUT = {"demo", "regress", "bench", "asm", "evaluate", "compare-vela", "explore"}
"""Commands that take minutes or need other files first: each has a test of its own."""


@pytest.mark.slow
def test_every_result_is_one_json_value(tmp_path, monkeypatch, cache_folder, capsys):
    monkeypatch.chdir(tmp_path)
    for words, kind in STEPS:
        assert main([*words, "--json"]) == 0, capsys.readouterr().err
        assert isinstance(json.loads(capsys.readouterr().out), kind), words
    assert {words[0] for words, _ in STEPS} | WITHOUT == set(COMMANDS)


def test_assembling_too(tmp_path, capsys):
    (tmp_path / "one.s").write_text("END\n")
    assert main(["asm", str(tmp_path / "one.s"), "-o", str(tmp_path / "one.bin"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["instructions"] == 1
    assert told["bytes"] == (tmp_path / "one.bin").stat().st_size
