"""How pictures become inputs: by options of quantize, which the model stores for every later command."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

import intloom
from intloom.common.errors import FileFormatError, UsageError
from intloom.flow.inputs import read_inputs
from intloom.pictures import Fit
from intloom.preparation import KEY, PLAIN, Layout, Preparation, stored_preparation
from intloom.quantization import QuantizeOptions, quantize
from intloom.zoo import build

FLOAT = np.dtype(np.float32)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Twice as wide as high: the left half red, the right half blue."""
    pixels = np.zeros((8, 16, 3), np.uint8)
    pixels[:, :8, 0] = pixels[:, 8:, 2] = 255
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


@pytest.mark.parametrize(("fit", "corner"), [(Fit.STRETCH, 1.0), (Fit.CROP, 1.0), (Fit.LETTERBOX, 114 / 255)])
def test_fits(fit: Fit, corner: float, picture: Path) -> None:
    made = Preparation(resize=fit).read(picture, (1, 3, 8, 8), FLOAT)
    assert made.shape == (1, 3, 8, 8)
    assert made[0, 0, 0, 0] == pytest.approx(corner)
    assert made[0, 2, 4, 7] == pytest.approx(1.0)


def test_values_and_layouts(picture: Path) -> None:
    prepared = Preparation(mean="0.5,0.25,0", std=(0.5, 1, 2), bgr=True, resize="stretch")
    first = prepared.read(picture, (1, 3, 8, 16), FLOAT)
    np.testing.assert_allclose(first[0, :, 0, 0], [-1.0, -0.25, 0.5])
    last = prepared.read(picture, (1, 8, 16, 3), FLOAT)
    np.testing.assert_array_equal(last.transpose(0, 3, 1, 2), first)
    ambiguous = Preparation(layout=Layout.NHWC).read(picture, (1, 3, 3, 3), FLOAT)
    np.testing.assert_array_equal(ambiguous[0, 1, 0], [1, 0, 0])
    for dtype, white in ((np.int8, 127), (np.uint8, 255), (np.int16, 255), (np.int32, 255), (np.int64, 255)):
        codes = prepared.read(picture, (1, 3, 8, 16), np.dtype(dtype))[0, 2, 0]
        assert (codes.dtype, codes[0], codes[-1]) == (dtype, white, white - 255)
    assert Preparation(resize="stretch").read(picture, (1, 1, 8, 16), FLOAT)[0, 0, 0, 0] == pytest.approx(76 / 255)
    with pytest.raises(UsageError, match="mean must have one number for an input of 1 channels, not 3"):
        prepared.read(picture, (1, 1, 8, 16), FLOAT)


@pytest.mark.parametrize(
    "wrong", [{"mean": "1,2"}, {"std": "0"}, {"mean": "x"}, {"std": "nan"}, {"resize": "fill"}, {"layout": "chw"}]
)
def test_wrong_values(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Preparation(**wrong)  # type: ignore[arg-type]  # strings of a command line or file
    with pytest.raises(FileFormatError, match=KEY):
        stored_preparation({KEY: json.dumps(wrong)})


@pytest.mark.parametrize("text", ["", "[]", "1", '{"a": 1}', "[" * 100_000])
def test_metadata_of_others(text: str) -> None:
    with pytest.raises(FileFormatError, match=KEY):
        stored_preparation({KEY: text})


def test_every_command_uses_what_quantize_stores(tmp_path: Path, picture: Path) -> None:
    source, target = tmp_path / "f.onnx", tmp_path / "q.onnx"
    onnx.save(build("tiny", 32, 0), source)
    prepared = Preparation(mean="0.485,0.456,0.406", std="0.229,0.224,0.225", bgr=True, resize="stretch")
    quantize(source, target, picture.parent, QuantizeOptions(samples=1), preparation=prepared)
    assert stored_preparation({p.key: p.value for p in onnx.load(target).metadata_props}) == prepared
    program = intloom.compile(target, "nano")
    program.save(tmp_path / "p.loom")
    for bundle in (program.bundle, intloom.Program.load(tmp_path / "p.loom").bundle):
        (given,) = bundle.inputs
        made = read_inputs([str(picture)], bundle.inputs, 0)[given.name]
        np.testing.assert_array_equal(made, prepared.read(picture, tuple(given.shape), FLOAT))
    (first,) = intloom.Session(program).get_inputs()
    assert first.preparation == prepared
    again = tmp_path / "again.onnx"
    quantize(source, again, picture.parent, QuantizeOptions(samples=1))
    assert stored_preparation({p.key: p.value for p in onnx.load(again).metadata_props}) is None
    assert intloom.compile(again, "nano").bundle.inputs[0].preparation == PLAIN
