"""Calibration samples: arrays that can say nothing about ranges are refused by name."""

import numpy as np
import pytest

from intloom.common.errors import UsageError
from intloom.quantization.samples import InputSpec, load_samples

SPEC = InputSpec("images", (1, 3, 4, 4))


def stored(folder, array):
    np.save(folder / "a.npy", array)
    return folder / "a.npy"


@pytest.mark.parametrize(
    ("wild", "said"),
    [(np.nan, "finite"), (np.inf, "finite"), (1e300, "finite"), (1j, "complex"), ("a", "U1"), (True, "bool")],
)
def test_values_that_are_no_finite_numbers(wild, said, tmp_path):
    array = np.zeros((2, 3, 4, 4), np.array(wild).dtype)
    array[1, 2, 3, 3] = wild
    with pytest.raises(UsageError, match=said):
        load_samples(SPEC, stored(tmp_path, array), 8, 0)


def test_batches_are_split(tmp_path):
    array = np.arange(96, dtype=np.int64).reshape(2, 3, 4, 4)
    samples = load_samples(SPEC, stored(tmp_path, array), 8, 0)
    assert [s.shape for s in samples] == [SPEC.shape] * 2
    np.testing.assert_array_equal(np.concatenate(samples), array.astype(np.float32))


def test_an_empty_archive_is_told(tmp_path):
    np.savez(tmp_path / "a.npz")
    with pytest.raises(UsageError, match="holds none"):
        load_samples(SPEC, tmp_path / "a.npz", 8, 0)
