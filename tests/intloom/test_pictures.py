"""Image files as network inputs."""

import numpy as np
import pytest
from PIL import Image, PngImagePlugin
from PIL.PngImagePlugin import PngInfo

from intloom.common.errors import FileFormatError
from intloom.pictures import draw_boxes, letterbox, open_picture, read_picture

ORIENTATION = 0x0112
TURNS = {3: 2, 6: 3, 8: 1}
"""EXIF orientation, and the quarter turns to the left that make the photo upright."""


@pytest.mark.parametrize("orientation", TURNS)
def test_photos_are_turned_upright(tmp_path, orientation):
    stored = np.random.default_rng(1).integers(0, 256, (6, 10, 3), np.uint8)
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    Image.fromarray(stored).save(tmp_path / "photo.png", exif=exif)
    upright = read_picture(tmp_path / "photo.png", 32, 32).original
    np.testing.assert_array_equal(np.asarray(upright), np.rot90(stored, TURNS[orientation]))


@pytest.mark.parametrize("size", [(64, 31), (31, 64), (64, 32), (15, 64)])
def test_the_border_of_a_letterbox_is_as_wide_on_both_sides(size):
    """An odd pixel is on the right and at the bottom, and the border is gray."""
    made = letterbox(Image.new("RGB", size, "white"), 64, 64)
    assert (made.left, made.top) == ((64 - size[0]) // 2, (64 - size[1]) // 2)
    white = (made.tensor[0] == 1.0).all(axis=0)
    inside = np.zeros((64, 64), bool)
    inside[made.top :, made.left :][: size[1], : size[0]] = True
    np.testing.assert_array_equal(white, inside)


def test_gray_pictures_of_16_bits_keep_their_values(tmp_path):
    stored = np.arange(0, 65536, 1024, np.uint16).reshape(8, 8)
    Image.fromarray(stored).save(tmp_path / "gray.png")
    np.testing.assert_array_equal(np.asarray(open_picture(tmp_path / "gray.png"))[..., 0], stored >> 8)


def test_a_picture_that_its_decoder_refuses(tmp_path):
    """Text that is larger unpacked than Pillow allows, for which it raises a ValueError."""
    text = PngInfo()
    text.add_text("comment", "0" * (PngImagePlugin.MAX_TEXT_CHUNK + 1), zip=True)
    Image.new("L", (8, 8)).save(tmp_path / "gray.png", pnginfo=text)
    with pytest.raises(FileFormatError, match=r"gray.png cannot be read: .* too large"):
        open_picture(tmp_path / "gray.png")


@pytest.mark.parametrize("width", [320, 960])
def test_labels_of_boxes_grow_with_the_picture(tmp_path, width):
    draw_boxes(Image.new("RGB", (width, width)), [(width / 2, width / 2, width, width)], ["1"], tmp_path / "boxes.png")
    with Image.open(tmp_path / "boxes.png") as drawn:
        rows = np.flatnonzero((np.asarray(drawn)[: width // 2 - 1, width // 2 :] > 150).all(axis=2).any(axis=1))
    assert 0.015 * width <= len(rows) <= 0.04 * width
