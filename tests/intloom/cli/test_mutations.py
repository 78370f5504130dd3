"""Damaged model files through the command line: one line that says what is wrong, or a right answer."""

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from intloom.cli import main
from intloom.common.errors import ExitCode
from tests.support.mutation import mutate
from tests.support.random_model import random_model

LONGEST_SECONDS = 10.0
BASES = 12
REJECTED = {ExitCode.BAD_FILE, ExitCode.UNSUPPORTED}
NO_ANSWER = ("not the product", "may leave 32 bits", "has a zero point")
"""Biases with which onnxruntime itself gives one answer where it fuses a convolution and another where not."""


def call(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code and output of the command line, which must be quick and must not show a traceback."""
    started = time.monotonic()
    code = main(words)
    seconds = time.monotonic() - started
    out, err = capsys.readouterr()
    assert seconds < LONGEST_SECONDS, words
    assert "Traceback" not in err, err
    assert "internal error" not in err, err
    if code:
        assert code in REJECTED, (code, err)
        # A warning about a size that the damage opened may come first.
        *warnings, last = err.splitlines()
        assert last.startswith("intloom: error: "), err
        assert all(line.startswith(("WARNING", " ")) for line in warnings), err
    return code, out, err


def outcome(path: Path, capsys: pytest.CaptureFixture[str], *, run: bool) -> str:
    """What became of a file: the exit code of its error, `inspected`, or `right` for one that was compiled and run."""
    code, out, _ = call(["inspect", str(path), "--json"], capsys)
    if code:
        return ExitCode(code).name
    if not run or '"regions": []' in out or any(word in out for word in NO_ANSWER):
        return "inspected"
    program = path.with_suffix(".loom")
    code, _, err = call(["compile", str(path), "-o", str(program), "--preset", "nano", "-q"], capsys)
    if code:
        return f"not compiled: {ExitCode(code).name}"
    result = main(["run", str(program), "--backend", "isa", "--check", "-q", "--json"])
    _, err = capsys.readouterr()
    if result == ExitCode.BAD_FILE and ("onnxruntime cannot load" in err or "onnxruntime cannot run" in err):
        return "refused by onnxruntime"
    assert result in (ExitCode.OK, ExitCode.UNSUPPORTED, ExitCode.USAGE), err
    return "right"


def try_all(seed: int, count: int, each: int, path: Path, capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    """Inspect damaged files; compile and run one of each `each`."""
    found: Counter[str] = Counter()
    bases = [random_model(b).SerializeToString() for b in range(BASES)]
    for number in range(count):
        path.write_bytes(mutate(random.Random(seed + number), bases[number % BASES]))
        found[outcome(path, capsys, run=number % each == 0)] += 1
    return found


def test_some_damaged_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = try_all(0, 48, 2, tmp_path / "damaged.onnx", capsys)
    assert min(found["BAD_FILE"], found["inspected"], found["right"]) > 0, found


@pytest.mark.slow
@pytest.mark.parametrize("count", [400, pytest.param(2000, marks=pytest.mark.nightly)])
def test_many_damaged_files(count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    found = try_all(seed, count, 2, tmp_path / "damaged.onnx", capsys)
    assert found["right"] > 0, found
