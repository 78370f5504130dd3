"""Shell completion: subcommands, options and the values that the project knows."""

import pytest

from intloom.cli import main
from intloom.cli.commands import COMMANDS
from intloom.common.errors import ExitCode
from intloom.hw.spec.params import PRESETS
from intloom.zoo import ZOO


@pytest.fixture
def complete(monkeypatch, capsys):
    """What the shell would offer at the end of a line."""
    monkeypatch.setenv("_INTLOOM_COMPLETE", "complete_bash")

    def offered(line):
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        assert main([]) == ExitCode.OK
        return capsys.readouterr().out.split()

    return offered


def test_words_are_completed(complete):
    assert complete("intloom ") == list(COMMANDS)
    assert complete("intloom re") == ["regress", "report"]
    assert complete("intloom cache c") == ["clear"]
    assert complete("intloom run --back") == ["--backend"]
    assert complete("intloom run --backend ") == ["golden", "isa", "rtl", "board"]
    assert complete("intloom verilog --preset ") == list(PRESETS)
    assert complete("intloom demo --preset s") == complete("intloom bench --preset s") == ["small"]
    assert complete("intloom demo --model res") == [n for n in ZOO if n.startswith("res")]
    assert complete("intloom regress sm") == ["smoke"]
    assert complete("intloom zoo build yolov8n") == [n for n in ZOO if n.startswith("yolov8n")]
