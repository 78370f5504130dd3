"""Shell completion: subcommands, options and the values that the project knows."""

import os
import subprocess
import sys

import pytest

from intloom.cli.commands import COMMANDS
from intloom.hw.spec.params import PRESETS
from intloom.zoo import ZOO

FAST_SECONDS = 30


def complete(line):
    """What the shell would offer at the end of `line`."""
    env = {**os.environ, "_INTLOOM_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    code = "import sys; sys.argv[0] = 'intloom'; from intloom.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False, timeout=FAST_SECONDS
    )
    return done.stdout.split()


@pytest.mark.slow
def test_words_are_completed():
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
