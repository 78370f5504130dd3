"""Calibration samples: arrays that can say nothing about ranges are refused by name."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image

import intloom
from intloom.common.errors import FileFormatError, UsageError
from intloom.quantization import quantize
from intloom.quantization.samples import InputSpec, load_samples
from tests.support.given_model import given_model
from tests.support.mutant_outcome import feeds_of

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
        load_samples([SPEC], stored(tmp_path, array), 8, 0)


def test_batches_are_split(tmp_path):
    array = np.arange(96, dtype=np.int64).reshape(2, 3, 4, 4)
    samples = load_samples([SPEC], stored(tmp_path, array), 8, 0)
    assert [s["images"].shape for s in samples] == [SPEC.shape] * 2
    np.testing.assert_array_equal(np.concatenate([s["images"] for s in samples]), array.astype(np.float32))


def test_an_empty_archive_is_told(tmp_path):
    np.savez(tmp_path / "a.npz")
    with pytest.raises(UsageError, match="holds none"):
        load_samples([SPEC], tmp_path / "a.npz", 8, 0)


TWO = [InputSpec("image", (1, 3, 4, 4)), InputSpec("ids", (1, 5), np.dtype(np.int64))]


def test_several_inputs_come_from_archives(tmp_path):
    noise = np.random.default_rng(1)
    arrays = [{"image": noise.random((1, 3, 4, 4)), "ids": noise.integers(0, 99, (1, 5))} for _ in range(3)]
    for number, named in enumerate(arrays):
        np.savez(tmp_path / f"{number}.npz", **named)
        for name, array in named.items():
            (tmp_path / "apart" / name).mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / "apart" / name / f"{number}.npy", array)
    samples = load_samples(TWO, tmp_path, None, 0)
    for sample, other in zip(samples, load_samples(TWO, tmp_path / "apart", None, 0), strict=True):
        assert all(np.array_equal(sample[name], other[name]) for name in ("image", "ids"))
    np.save(tmp_path / "apart" / "ids" / "3.npy", arrays[0]["ids"])
    with pytest.raises(UsageError, match=r"as many samples, not \[3, 4\]"):
        load_samples(TWO, tmp_path / "apart", None, 0)
    assert len(samples) == 3
    assert len(load_samples(TWO, tmp_path, 2, 0)) == 2
    for sample, named in zip(samples, arrays, strict=True):
        np.testing.assert_array_equal(sample["image"], named["image"].astype(np.float32))
        np.testing.assert_array_equal(sample["ids"], named["ids"])
        assert sample["ids"].dtype == np.int64
    np.save(tmp_path / "4.npy", arrays[0]["image"])
    with pytest.raises(UsageError, match="the model has image, ids: give .npz files with an array for each"):
        load_samples(TWO, tmp_path, None, 0)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"image": np.zeros((1, 3, 4, 4))}, "must hold an array 'ids', but holds image"),
        ({"image": np.zeros((2, 3, 4, 4)), "ids": np.zeros((1, 5))}, "as many samples of each input"),
        ({"image": np.zeros((1, 3, 4, 4)), "ids": np.full((1, 5), 0.5)}, "must hold int64 numbers, but 5 of 5 are not"),
    ],
)
def test_archives_that_do_not_fit_the_inputs(named, said, tmp_path):
    np.savez(tmp_path / "a.npz", **named)
    with pytest.raises(UsageError, match=said):
        load_samples(TWO, tmp_path / "a.npz", None, 0)


def test_all_pictures_are_used_and_read_one_by_one(tmp_path):
    for number in range(11):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / f"{number:02}.png")
    samples = load_samples([SPEC], tmp_path, None, 0)
    assert len(samples) == 11
    assert [round(float(s["images"].max() * 255)) for s in samples] == list(range(11))
    whole = load_samples([InputSpec("images", (1, 6, 6, 3), np.dtype(np.uint8))], tmp_path, None, 0)
    assert whole[7]["images"].dtype == np.uint8
    assert whole[7]["images"].max() == 7
    (tmp_path / "07.png").unlink()
    with pytest.raises(FileFormatError, match="07.png cannot be read"):
        whole[7]


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("shape", [(1, 12), (1, 3, 4, 4)])
def test_synthetic_integers_are_indices_or_the_bytes_of_an_image(shape, dtype):
    (made,) = (s["x"] for s in load_samples([InputSpec("x", shape, np.dtype(dtype))], None, 1, 3))
    image = dtype == np.uint8 and len(shape) == 4
    assert (made.dtype, made.shape, made.max() > 1) == (dtype, shape, image)


@pytest.mark.parametrize("kind", ["float16", "uint8", "two inputs"])
def test_other_inputs_are_quantized_and_compared(kind, tmp_path):
    """The quantized model compiles, and its run equals onnxruntime."""
    half = kind == "float16"
    real = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    first = TensorProto.UINT8 if kind == "uint8" else real
    noise = np.random.default_rng(2)
    inputs = {"x": (1, 3, 8, 8)}
    nodes, value = [], "x"
    if kind == "uint8":
        nodes += [
            helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["f", "s"], ["r"]),
        ]
        value = "r"
    nodes.append(helper.make_node("Conv", [value, "w"], ["c"], pads=[1] * 4))
    result = "c"
    if kind == "two inputs":
        inputs["other"] = (1, 8, 8, 8)
        nodes.append(helper.make_node("Add", ["c", "other"], ["a"]))
        result = "a"
    nodes.append(helper.make_node("Relu", [result], ["y"]))
    weights = noise.normal(size=(8, 3, 3, 3)).astype(np.float16 if half else np.float32)
    types = {"x": first, "other": real, "y": real}
    model = given_model(nodes, inputs, {"y": (1, 8, 8, 8)}, {"w": weights, "s": 1 / 255}, types=types)
    onnx.save(model, tmp_path / "f.onnx")
    done = quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", cache=tmp_path / "cache")
    assert done.samples == 8
    program = intloom.compile(tmp_path / "q.onnx", "nano")
    session = intloom.Session(program, backend="isa", check=True)
    session.run(None, feeds_of(program, 1))
    assert session.last is not None
    assert session.last.record["compared_bytes"] > 0
