"""Image files: reading, resizing to the size of an input, and drawing of boxes."""

import colorsys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont, ImageOps

from intloom.common.errors import FileFormatError
from intloom.files import atomic_path

PICTURE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp"})
ARRAY_SUFFIXES = frozenset({".npy", ".npz"})
_TWO_CORNERS = 4
_SMALLEST_LABEL, _LABELS_ACROSS = 10, 40
"""Smallest height of a label in pixels, and how many of these heights a picture is wide."""
_GRAY = (114, 114, 114)
"""Padding color of YOLO."""


class Fit(StrEnum):
    """How a picture of another aspect ratio fits an input: with gray borders, distorted, or cut at the center."""

    LETTERBOX = "letterbox"
    STRETCH = "stretch"
    CROP = "crop"


@dataclass(frozen=True)
class Picture:
    """An image as network input, with the mapping from its pixels to the original's."""

    tensor: NDArray[np.float32]
    """[1, 3, height, width], RGB, 0 to 1; one channel if the picture is gray."""
    original: Image.Image
    scales: tuple[float, float]
    """Along width and height."""
    left: int
    top: int

    def to_original(self, boxes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Corners x1, y1, x2, y2, converted from the network's pixels to the original's."""
        offset = np.array([self.left, self.top, self.left, self.top], np.float32)
        moved: NDArray[np.float32] = ((boxes - offset) / np.array(self.scales * 2, np.float32)).astype(np.float32)
        return moved


def read_picture(path: Path, height: int, width: int) -> Picture:
    """An image file as `open_picture` reads it, resized with constant aspect ratio and padded with gray."""
    return letterbox(open_picture(path), height, width)


def sample_files(folder: Path) -> list[Path]:
    """The images, .npy and .npz files of a folder, in the order of their names."""
    return [p for p in sorted(folder.iterdir()) if p.suffix.lower() in PICTURE_SUFFIXES or p.suffix in ARRAY_SUFFIXES]


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
            upright = ImageOps.exif_transpose(opened)
            if upright.mode.startswith("I;16"):
                # Pillow's own conversion clips pixels of 16 bits to 255.
                upright = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
            return upright.convert("RGB")
    except Exception as error:  # noqa: BLE001  # Pillow's decoders raise many classes
        raise FileFormatError(f"image {path} cannot be read: {error}") from None


def letterbox(original: Image.Image, height: int, width: int) -> Picture:
    """`original` resized to fit `height` x `width`, centered on gray."""
    return fitted(original, height, width, Fit.LETTERBOX)


def fitted(original: Image.Image, height: int, width: int, fit: Fit) -> Picture:
    """`original`, in color or gray, resized to `height` x `width`."""
    scales = width / original.width, height / original.height
    if fit is not Fit.STRETCH:
        scales = ((min if fit is Fit.LETTERBOX else max)(scales),) * 2
    size = max(1, round(original.width * scales[0])), max(1, round(original.height * scales[1]))
    left, top = (width - size[0]) // 2, (height - size[1]) // 2
    if fit is Fit.CROP:
        canvas = ImageOps.fit(original, (width, height), Image.Resampling.BILINEAR)
    else:
        canvas = Image.new(original.mode, (width, height), _GRAY if original.mode == "RGB" else _GRAY[0])
        canvas.paste(original.resize(size, Image.Resampling.BILINEAR), (left, top))
    pixels = np.asarray(canvas, dtype=np.float32).reshape(height, width, -1) / np.float32(255.0)
    return Picture(np.ascontiguousarray(pixels.transpose(2, 0, 1)[None]), original, scales, left, top)


def draw_boxes(picture: Image.Image, boxes: Iterable[ArrayLike], labels: Sequence[str], path: Path) -> None:
    """Draw labeled boxes, given as two opposite corners or as all four, on a copy of `picture` and write it as PNG."""
    drawn = picture.copy()
    pen = ImageDraw.Draw(drawn)
    size = max(_SMALLEST_LABEL, max(picture.size) // _LABELS_ACROSS)
    font = ImageFont.load_default(size)
    for i, (box, label) in enumerate(zip(boxes, labels, strict=True)):
        color = _color(i)
        points = [float(v) for v in np.ravel(box)]
        draw = pen.rectangle if len(points) == _TWO_CORNERS else pen.polygon
        draw(points, outline=color, width=max(2, size // 8))
        corner = points[0] + size / 4, max(0.0, points[1] - 1.2 * size)
        left, top, right, bottom = pen.textbbox(corner, label, font)
        pen.rectangle((left - size / 4, top - size / 8, right + size / 4, bottom + size / 8), fill=color)
        pen.text(corner, label, fill="white", font=font)
    with atomic_path(path) as temporary:
        drawn.save(temporary, format="PNG")


def _color(index: int) -> tuple[int, int, int]:
    # Steps of the golden angle give consecutive boxes different hues for any number of boxes.
    red, green, blue = colorsys.hsv_to_rgb(index * 137.508 / 360 % 1.0, 0.8, 0.8)
    return int(255 * red), int(255 * green), int(255 * blue)
