"""Random models equal onnxruntime in every integer tensor and every output, end to end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.parity import assert_equal
from tests.support.random_model import random_model

SEEDS = st.integers(0, (1 << 32) - 1)


def check(seed: int) -> None:
    assert_equal(random_model(seed), seed)


@settings(max_examples=20)
@given(SEEDS)
def test_a_few_random_models_equal_onnxruntime(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("count", [120, pytest.param(500, marks=pytest.mark.nightly)])
def test_many_random_models_equal_onnxruntime(count: int, seed: int) -> None:
    for number in range(count):
        check(seed + number)
