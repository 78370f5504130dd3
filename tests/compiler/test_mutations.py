"""Damaged model files give a typed error or a correct result, never a crash or a hang."""

import random
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from intloom.common.errors import IntloomError
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import load_model
from tests.support.mutation import mutate
from tests.support.parity import assert_equal, random_feeds, run_folded, run_onnxruntime
from tests.support.random_model import random_model

LONGEST_SECONDS = 10.0
BASES = 12
NO_ANSWER = ("not the product", "may leave 32 bits", "has a zero point")
"""Biases with which onnxruntime's result depends on whether it fuses the convolution."""


def outcome(data: bytes, path: Path, seed: int) -> str:
    """The kind of error that a file gives, or `right`; a wrong answer or another exception fails the test."""
    path.write_bytes(data)
    started = time.monotonic()
    try:
        folded = fold_model(load_model(path))
    except IntloomError as error:
        return type(error).__name__ if str(error) else "silent error"
    finally:
        assert time.monotonic() - started < LONGEST_SECONDS
    if not folded.regions or any(word in v.reason for v in folded.assignments for word in NO_ANSWER):
        return "nothing to compare"
    model = onnx.ModelProto.FromString(data)
    feeds, names = random_feeds(model, seed), [o.name for o in model.graph.output]
    try:
        expected = run_onnxruntime(data, feeds, names)
    except Exception:  # noqa: BLE001  # the runtime refuses models that the standard allows, by exceptions of its own
        return "refused by onnxruntime"
    made = run_folded(folded, feeds)
    if not all(np.array_equal(made[name], expected[name]) for name in names):
        # A damaged bias may saturate in onnxruntime's float kernels, where its integer kernels wrap.
        assert_equal(model, seed, folded)
    return "right"


def try_all(seed: int, count: int, path: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    bases = [random_model(b).SerializeToString() for b in range(BASES)]
    for number in range(count):
        one = seed + number
        print(f"mutation {one}")
        found[outcome(mutate(random.Random(one), bases[number % BASES]), path, one)] += 1
    print(dict(found))
    assert not found["silent error"]
    return found


def test_some_damaged_files(tmp_path: Path) -> None:
    found = try_all(0, 150, tmp_path / "damaged.onnx")
    assert min(found["ModelError"], found["FileFormatError"], found["right"]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("count", [400, pytest.param(2000, marks=pytest.mark.nightly)])
def test_many_damaged_files(count: int, tmp_path: Path, seed: int) -> None:
    found = try_all(seed, count, tmp_path / "damaged.onnx")
    assert found["right"] > count // 100
