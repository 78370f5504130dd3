"""Seeded synthetic images with the statistics of photographs: 1/f texture, shaded shapes, edges and noise.

They replace photographs if the user gives none: for calibration, for the zoo's weight statistics and as test input.
"""

import numpy as np
from numpy.typing import NDArray

FloatImage = NDArray[np.float32]

_CHANNELS = (1, 3, 4)
"""Channels of images."""
_SHAPES = 6
"""Shaded ellipses per image: enough for edges in every part of it."""


def synthetic_image(height: int, width: int, seed: int, channels: int = 3) -> FloatImage:
    """One image of values 0 to 1, `[channels, height, width]`; the same seed gives the same image."""
    rng = np.random.default_rng([seed, height, width, channels])
    image = _texture(rng, channels, height, width)
    for _ in range(_SHAPES):
        _draw_ellipse(rng, image)
    image += rng.normal(0.0, 0.01, image.shape)
    return np.clip(image, 0.0, 1.0).astype(np.float32)


def channels_last(shape: tuple[int, ...]) -> bool:
    """Whether an image input of this shape has its channels last, as TensorFlow's converters write it."""
    return len(shape) == 4 and shape[1] not in _CHANNELS and shape[3] in _CHANNELS


def seeded_input(shape: tuple[int, ...], seed: int) -> FloatImage:
    """Synthetic images for an input of four dimensions, normal noise for any other."""
    if len(shape) == 4:
        last = channels_last(shape)
        height, width, channels = shape[1:] if last else (*shape[2:], shape[1])
        images = np.stack([synthetic_image(height, width, seed + i, channels) for i in range(shape[0])])
        return np.ascontiguousarray(images.transpose(0, 2, 3, 1)) if last else images
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def synthetic_batch(count: int, height: int, width: int, seed: int, channels: int = 3) -> FloatImage:
    """`count` different images as one batch."""
    return np.stack([synthetic_image(height, width, seed * 1000 + i, channels) for i in range(count)])


def _texture(rng: np.random.Generator, channels: int, height: int, width: int) -> NDArray[np.float64]:
    """Noise whose power falls as 1/f^2, as in photographs, with colors that mostly move together."""
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :]
    amplitude = 1.0 / np.maximum(np.hypot(fy, fx), 1.0 / max(height, width))
    shape = (channels + 1, *amplitude.shape)
    spectrum = amplitude * np.exp(2j * np.pi * rng.random(shape))
    fields = np.fft.irfft2(spectrum, s=(height, width))
    fields /= fields.std(axis=(1, 2), keepdims=True) + 1e-9
    mixed = 0.8 * fields[:1] + 0.4 * fields[1:]
    image: NDArray[np.float64] = 0.5 + 0.2 * mixed
    return image


def _draw_ellipse(rng: np.random.Generator, image: NDArray[np.float64]) -> None:
    channels, height, width = image.shape
    y, x = np.mgrid[0:height, 0:width]
    center_y, center_x = rng.uniform(0, height), rng.uniform(0, width)
    radius_y, radius_x = rng.uniform(0.05, 0.3) * height + 1, rng.uniform(0.05, 0.3) * width + 1
    inside = ((y - center_y) / radius_y) ** 2 + ((x - center_x) / radius_x) ** 2 < 1
    shade = 0.7 + 0.3 * (x - center_x) / radius_x
    color = rng.random((channels, 1, 1))
    image[:, inside] = 0.2 * image[:, inside] + 0.8 * (color * shade)[:, inside]
