"""Inputs of several images are taken apart only where each input has as many."""

import numpy as np
import pytest

from intloom.common.errors import UsageError
from intloom.flow.model_interface import NodeArg, split_batch, typed_feeds

INPUTS = (NodeArg("a", "tensor(float)", [1, 2]), NodeArg("b", "tensor(uint8)", [1, 3]))


def feed(first: int, second: int) -> dict[str, np.ndarray]:
    return {
        "a": np.arange(2 * first, dtype=np.float32).reshape(first, 2),
        "b": np.arange(3 * second, dtype=np.uint8).reshape(second, 3),
    }


@pytest.mark.parametrize("count", [1, 2, 3])
def test_images_in_order(count: int) -> None:
    parts = split_batch(feed(count, count), INPUTS, (NodeArg("y", "tensor(float)", [1]),))
    assert len(parts) == count
    for name, array in feed(count, count).items():
        np.testing.assert_array_equal(np.concatenate([typed_feeds(part, INPUTS)[name] for part in parts]), array)


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1), (2, 3), (3, 2), (0, 2), (0, 0)])
def test_inputs_of_different_counts_are_refused(first: int, second: int) -> None:
    (whole,) = split_batch(feed(first, second), INPUTS, ())
    with pytest.raises(UsageError, match="must have shape"):
        typed_feeds(whole, INPUTS)


@pytest.mark.parametrize("size", [[], [2, 1]])
def test_programs_for_other_batches_are_not_repeated(size: list[int]) -> None:
    assert len(split_batch(feed(2, 2), INPUTS, (NodeArg("y", "tensor(float)", size),))) == 1
