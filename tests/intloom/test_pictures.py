"""Image files as network inputs."""

import numpy as np
import pytest
from PIL import Image

from intloom.pictures import read_picture

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
