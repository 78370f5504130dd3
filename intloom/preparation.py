"""How a picture becomes a network's input: size, channels and values. A quantized model stores it in its metadata."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from intloom.arrays import Array
from intloom.common.errors import FileFormatError, UsageError
from intloom.images import channels_last
from intloom.pictures import Fit, Picture, fitted, open_picture

KEY = "intloom.preparation"
"""Key of the metadata of an ONNX file."""
_HALF = 0.5


def _numbers(name: str, given: Any) -> tuple[float, ...]:
    words = given.split(",") if isinstance(given, str) else given
    try:
        values = tuple(float(w) for w in words)
    except (TypeError, ValueError):
        values = ()
    if len(values) not in (1, 3) or not all(isfinite(v) for v in values):
        raise UsageError(f"{name} must be one or three finite numbers such as 0.485,0.456,0.406, not {given!r}")
    return values


class Layout(StrEnum):
    """Where the channels of an image input are; `auto` looks for the axis of 1, 3 or 4."""

    AUTO = "auto"
    NCHW = "nchw"
    NHWC = "nhwc"


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Values are (pixel / 255 - mean) / std; an integer input has the pixels themselves."""

    mean: Sequence[float] | str = "0"
    std: Sequence[float] | str = "1"
    bgr: bool = False
    resize: Fit = Fit.LETTERBOX
    layout: Layout = Layout.AUTO

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        for name, kind in (("resize", Fit), ("layout", Layout)):
            if getattr(self, name) not in list(kind):
                raise UsageError(f"{name} must be one of {', '.join(kind)}, not {getattr(self, name)!r}")
            object.__setattr__(self, name, kind(getattr(self, name)))
        if 0.0 in self.std:
            raise UsageError("std must not be 0; give the deviation of pixels from 0 to 1")

    def read(self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An image file as a value of an input; raises what `picture` raises."""
        return self.tensor(self.picture(path, shape), shape, dtype)

    def floats(self, path: Path, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """An image file as a value of a float input."""
        return self.read(path, shape, np.dtype(np.float32)).astype(np.float32)

    def picture(self, path: Path, shape: tuple[int, ...]) -> Picture:
        """An image file in the size of an input, in color or gray.

        Raises
        ------
        UsageError
            The shape is not that of an image.
        FileFormatError
            The file cannot be read as an image.
        """
        last = self._channels_last(shape)
        channels = shape[3 if last else 1] if len(shape) == 4 else 0
        if channels not in (1, 3):
            raise UsageError(
                f"image {path} needs an input of 1 or 3 channels, [1, 3, H, W] or [1, H, W, 3], not {list(shape)}; "
                "give a .npy file instead"
            )
        height, width = shape[1:3] if last else shape[2:]
        picture = open_picture(path)
        return fitted(picture if channels == 3 else picture.convert("L"), height, width, self.resize)

    def tensor(self, picture: Picture, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The value of an input for a picture that fits it."""
        pixels = picture.tensor[:, ::-1] if self.bgr else picture.tensor
        moved = pixels.transpose(0, 2, 3, 1) if self._channels_last(shape) else pixels
        return self.values(np.ascontiguousarray(moved), dtype)

    def values(self, pixels: NDArray[np.float32], dtype: np.dtype[Any]) -> Array:
        """Pixels from 0 to 1 as values of an input: bytes where its type is an integer, less 128 where it is int8."""
        if dtype.kind in "iu":
            codes = np.rint(np.clip(pixels, 0.0, 1.0) * 255.0) - (128 if dtype == np.int8 else 0)
            integers: Array = codes.astype(dtype)
            return integers
        if dtype.kind == "b":
            return pixels > _HALF
        if self == PLAIN or pixels.ndim != 4:
            return pixels.astype(dtype)
        last = self._channels_last(pixels.shape)
        channels, shape = pixels.shape[3 if last else 1], (1, 1, 1, -1) if last else (1, -1, 1, 1)
        for name, given in (("mean", self.mean), ("std", self.std)):
            if len(given) not in (1, channels):
                raise UsageError(f"{name} must have one number for an input of {channels} channels, not {len(given)}")
        mean, std = (np.array(v, np.float32).reshape(shape) for v in (self.mean, self.std))
        normalized: Array = ((pixels - mean) / std).astype(dtype)
        return normalized

    def _channels_last(self, shape: tuple[int, ...]) -> bool:
        return channels_last(shape) if self.layout is Layout.AUTO else self.layout is Layout.NHWC

    def store(self, model: onnx.ModelProto) -> None:
        """Write it into the metadata of a model, unless it is the default."""
        kept = [p for p in model.metadata_props if p.key != KEY]
        del model.metadata_props[:]
        model.metadata_props.extend(kept)
        if self != PLAIN:
            model.metadata_props.add(key=KEY, value=json.dumps(asdict(self)))


PLAIN = Preparation()
"""RGB from 0 to 1, letterboxed: what YOLO expects."""


def stored_preparation(metadata: Mapping[str, str]) -> Preparation | None:
    """The preparation in a model's metadata; None where there is none.

    Raises
    ------
    FileFormatError
        The metadata holds something else.
    """
    if KEY not in metadata:
        return None
    try:
        return Preparation(**json.loads(metadata[KEY]))
    except (ValueError, TypeError, RecursionError, UsageError) as error:
        raise FileFormatError(f"metadata {KEY} of the model must be as intloom quantize writes it: {error}") from None
