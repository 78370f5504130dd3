"""Image files: letterboxing and normalization as YOLOv8 requires, and drawing of boxes."""

import colorsys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageOps, UnidentifiedImageError

from intloom.common.errors import FileFormatError, UsageError
from intloom.files import atomic_path
from intloom.images import channels_last

PICTURE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp"})
_COLORS = 3
_TWO_CORNERS = 4
_GRAY = (114, 114, 114)
"""Padding color of YOLO."""


@dataclass(frozen=True)
class Picture:
    """An image as network input, with the mapping from its pixels to the original's."""

    tensor: NDArray[np.float32]
    """[1, 3, height, width], RGB, 0 to 1."""
    original: Image.Image
    scale: float
    left: int
    top: int

    def to_original(self, boxes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Corners x1, y1, x2, y2, converted from the network's pixels to the original's."""
        offset = np.array([self.left, self.top, self.left, self.top], np.float32)
        moved: NDArray[np.float32] = ((boxes - offset) / self.scale).astype(np.float32)
        return moved


def read_picture(path: Path, height: int, width: int) -> Picture:
    """An image file as `open_picture` reads it, resized with constant aspect ratio and padded with gray."""
    return letterbox(open_picture(path), height, width)


def open_picture(path: Path) -> Image.Image:
    """An image file in RGB, turned upright by its EXIF orientation.

    Raises
    ------
    FileFormatError
        The file cannot be read as an image.
    """
    try:
        with Image.open(path) as opened:
            # Cameras store photos as the sensor reads them, with the orientation as an EXIF tag.
            return ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise FileFormatError(f"image {path} cannot be read: {error}") from None


def read_tensor(path: Path, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """An image file as a network input of `shape`.

    Raises
    ------
    UsageError
        The shape is not that of a color image.
    FileFormatError
        The file cannot be read as an image.
    """
    if channels_last(shape) and shape[3] == _COLORS:
        return np.ascontiguousarray(read_picture(path, shape[1], shape[2]).tensor.transpose(0, 2, 3, 1))
    if len(shape) != 4 or shape[1] != _COLORS:
        raise UsageError(
            f"image {path} needs an input of shape [1, 3, H, W] or [1, H, W, 3], not {list(shape)}; give a .npy file "
            "instead"
        )
    return read_picture(path, shape[2], shape[3]).tensor


def letterbox(original: Image.Image, height: int, width: int) -> Picture:
    """`original` resized to fit `height` x `width`, centered on gray."""
    scale = min(width / original.width, height / original.height)
    size = max(1, round(original.width * scale)), max(1, round(original.height * scale))
    left, top = (width - size[0]) // 2, (height - size[1]) // 2
    canvas = Image.new("RGB", (width, height), _GRAY)
    canvas.paste(original.resize(size, Image.Resampling.BILINEAR), (left, top))
    pixels = np.asarray(canvas, dtype=np.float32) / np.float32(255.0)
    return Picture(np.ascontiguousarray(pixels.transpose(2, 0, 1)[None]), original, scale, left, top)


def draw_boxes(picture: Image.Image, boxes: Iterable[ArrayLike], labels: Sequence[str], path: Path) -> None:
    """Draw labeled boxes, given as two opposite corners or as all four, on a copy of `picture` and write it as PNG."""
    drawn = picture.copy()
    pen = ImageDraw.Draw(drawn)
    for i, (box, label) in enumerate(zip(boxes, labels, strict=True)):
        color = _color(i)
        points = [float(v) for v in np.ravel(box)]
        draw = pen.rectangle if len(points) == _TWO_CORNERS else pen.polygon
        draw(points, outline=color, width=2)
        corner = (points[0], max(0.0, points[1] - 12.0))
        pen.rectangle(pen.textbbox(corner, label), fill=color)
        pen.text(corner, label, fill="white")
    with atomic_path(path) as temporary:
        drawn.save(temporary, format="PNG")


def _color(index: int) -> tuple[int, int, int]:
    # Steps of the golden angle give consecutive boxes different hues for any number of boxes.
    red, green, blue = colorsys.hsv_to_rgb(index * 137.508 / 360 % 1.0, 0.8, 0.8)
    return int(255 * red), int(255 * green), int(255 * blue)
