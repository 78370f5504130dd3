"""Arrays from files: what is no plain array of real numbers is refused by name."""

import contextlib

import numpy as np
import pytest

from intloom.arrays import check_real, load_arrays
from intloom.common.errors import FileFormatError, UsageError


def test_an_archive_gives_its_arrays_by_name(tmp_path):
    np.savez(tmp_path / "two.npz", a=np.arange(3), b=np.ones(2))
    arrays = load_arrays(tmp_path / "two.npz", "input")
    assert isinstance(arrays, dict)
    assert arrays["a"].tolist() == [0, 1, 2]
    assert arrays["b"].tolist() == [1, 1]


def test_a_lone_array_comes_as_itself(tmp_path):
    np.save(tmp_path / "one.npy", np.arange(4, dtype=np.int8))
    array = load_arrays(tmp_path / "one.npy", "input")
    assert isinstance(array, np.ndarray)
    assert array.dtype == np.int8


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04 cut off", b"no array at all"])
def test_a_broken_file_is_refused_by_purpose_and_name(tmp_path, content):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"calibration .*x\.npz cannot be read"):
        load_arrays(path, "calibration")


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_a_damaged_file_is_read_or_refused(tmp_path, rng, name):
    path = tmp_path / name
    if name == "x.npy":
        np.save(path, np.zeros((4, 5), np.int8))
    else:
        np.savez_compressed(path, a=np.arange(20), b=np.zeros(3))
    whole = path.read_bytes()
    for _ in range(500):
        damaged = bytearray(whole[: rng.randrange(1, len(whole)) if rng.random() < 0.2 else None])
        for _ in range(3):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        with contextlib.suppress(FileFormatError):
            load_arrays(path, "input")


def test_an_array_larger_than_memory_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 5), np.int8))
    stated = (tmp_path / "x.npy").read_bytes().replace(b"(4, 5), }        ", b"(4, 99999999999)}")
    (tmp_path / "x.npy").write_bytes(stated)
    with pytest.raises(FileFormatError, match="x.npy"):
        load_arrays(tmp_path / "x.npy", "input")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="No such file"):
        load_arrays(tmp_path / "gone.npy", "input")


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.array([True])])
def test_what_is_no_real_number_is_refused(array):
    with pytest.raises(UsageError, match=f"input 'x' must hold real numbers, not {array.dtype}"):
        check_real(array, "input 'x'")


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int64])
def test_every_real_type_will_do(kind):
    check_real(np.zeros(3, kind), "input 'x'")
