"""Inputs of bytes and images with channels last, from synthetic values, pictures and arrays."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from PIL import Image

import intloom
from intloom.cli import main
from intloom.common.errors import ExitCode, UsageError
from intloom.flow.inputs import read_batch, read_inputs
from intloom.flow.model_interface import NodeArg
from intloom.images import seeded_input
from tests.support.corpus import MODELS
from tests.support.corpus.builder import maker

FORMS = ["uint8 input", "int8 input", "uint8 input, NHWC", "int8 input, NHWC"]


@pytest.fixture(params=FORMS)
def program(request, tmp_path):
    """A compiled program, and what it reads for a picture."""
    name = request.param
    path = tmp_path / "program.loom"
    intloom.compile(MODELS[name](maker(name)), "nano").save(path)
    pixels = np.random.default_rng(0).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "x.png")
    wanted = pixels.astype(np.int16) - (0 if name.startswith("uint8") else 128)
    ordered = wanted if name.endswith("NHWC") else wanted.transpose(2, 0, 1)
    return path, ordered[None].astype(np.uint8 if name.startswith("uint8") else np.int8)


def run(program, folder, *words):
    status = main(["run", str(program), "--backend", "isa", "--check", "-o", str(folder), "-q", *map(str, words)])
    (found,) = folder.glob("*.npy") if status == ExitCode.OK else [None]
    return status, None if found is None else np.load(found)


def test_a_picture_is_the_bytes_that_the_model_reads(program, tmp_path):
    path, wanted = program
    np.save(tmp_path / "x.npy", wanted)
    status, of_picture = run(path, tmp_path / "a", "--input", tmp_path / "x.png")
    assert status == ExitCode.OK
    (expected,) = intloom.Session(path, backend="isa").run(None, {"x": wanted})
    np.testing.assert_array_equal(of_picture, expected)
    np.testing.assert_array_equal(run(path, tmp_path / "b", "--input", tmp_path / "x.npy")[1], expected)


def test_without_an_input_the_bytes_are_those_of_a_synthetic_image(program, tmp_path):
    status, made = run(program[0], tmp_path / "run", "--seed", 3)
    assert status == ExitCode.OK
    assert len(np.unique(made)) > 5


@pytest.mark.parametrize("shape", [(2, 3, 6, 8), (2, 6, 8, 3)])
def test_images_of_a_batch_differ(shape):
    batch = seeded_input(shape, 1)
    np.testing.assert_array_equal(batch, np.concatenate([seeded_input((1, *shape[1:]), seed) for seed in (1, 2)]))
    assert batch.shape == shape
    assert (batch[0] != batch[1]).any()


def test_other_types_are_refused(program, tmp_path, capsys):
    np.save(tmp_path / "x.npy", program[1].astype(np.float32))
    assert run(program[0], tmp_path / "run", "--input", tmp_path / "x.npy")[0] == ExitCode.USAGE
    assert f"must be tensor({program[1].dtype}), not float32" in capsys.readouterr().err


def test_float_images_with_channels_last(tmp_path):
    m = maker("float NHWC")
    m.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 9, 6, 3)))
    (value,) = m.node("Transpose", ["x"], perm=[0, 3, 1, 2])
    m.output(m.conv(m.pair(value, (1, 3, 9, 6), 1 / 255, 0), 4))
    path = tmp_path / "program.loom"
    intloom.compile(m.model(), "nano").save(path)
    pixels = np.random.default_rng(0).integers(0, 256, (9, 6, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "x.png")
    (expected,) = intloom.Session(path, backend="isa").run(None, {"x": pixels[None] / np.float32(255)})
    np.testing.assert_array_equal(run(path, tmp_path / "run", "--input", tmp_path / "x.png")[1], expected)


def test_without_an_input_indices_are_valid(tmp_path):
    """A table of two rows, which larger integers than 0 and 1 exceed."""
    m = maker("tokens")
    m.inputs.append(helper.make_tensor_value_info("x", TensorProto.INT32, (1, 12)))
    (rows,) = m.node("Gather", [m.constant(np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16)), "x"])
    weight, _ = m.weights((16, 8), 1)
    (value,) = m.node("MatMul", [m.pair(rows, (1, 12, 16), 0.01, 100).name, weight])
    m.output(m.pair(value, (1, 12, 8), 0.02))
    intloom.compile(m.model(), "nano").save(tmp_path / "program.loom")
    assert len(np.unique(run(tmp_path / "program.loom", tmp_path / "run")[1])) > 5


@pytest.mark.parametrize(("kind", "shape", "highest"), [
    ("int32", [1, 3, 6, 6], 255), ("int64", [1, 3, 6, 6], 255), ("uint8", [1, 9], 255), ("int32", [1, 9], 1),
    ("int64", [4], 1),
])  # fmt: skip
def test_synthetic_integers_are_an_image_or_valid_indices(kind, shape, highest):
    (value,) = read_inputs([], [NodeArg("x", f"tensor({kind})", shape)], 3).values()
    assert (str(value.dtype), list(value.shape)) == (kind, shape)
    assert 0 <= value.min() <= value.max() <= highest
    assert highest == 1 or value.max() > 1


@pytest.mark.parametrize("counts", [(2, 3), (3, 2), (1, 2), (2, 1), (2, 2), (1, 1), (0, 0)])
def test_files_hold_as_many_images_for_each_input(counts, tmp_path):
    inputs = [NodeArg("a", "tensor(float)", [1, 2]), NodeArg("b", "tensor(float)", [1, 3])]
    arrays = {"a": np.ones((counts[0], 2), np.float32), "b": np.ones((counts[1], 3), np.float32)}
    np.savez(tmp_path / "x.npz", **arrays)
    if counts[0] == counts[1] > 0:
        assert len(read_batch(tmp_path / "x.npz", inputs)) == counts[0]
    else:
        with pytest.raises(UsageError, match="as many for each input, not "):
            read_batch(tmp_path / "x.npz", inputs)
