"""Random models equal onnxruntime in every integer tensor and every output, end to end."""

import pytest

from tests.support.parity import assert_equal
from tests.support.random_model import random_model


@pytest.mark.parametrize("count", [120, pytest.param(500, marks=pytest.mark.nightly)])
def test_random_models_equal_onnxruntime(count: int, seed: int) -> None:
    for number in range(seed, seed + count):
        assert_equal(random_model(number), number)
