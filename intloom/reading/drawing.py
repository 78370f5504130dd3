"""Pictures of text, drawn from a seed: single lines to calibrate and to measure on, and photographs of a sheet."""

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from intloom.images import synthetic_image

_VOCABULARY = """
accelerator apple April bakery bank book bread bridge bus butter castle cheese clear clock closed coffee cycle daily
door east entrance exit fox Friday garden ginger green hospital hotel image island January jazz juice key lake lemon
letter library light market memory milk morning museum network north number office open orange paper park pepper
platform post price quick quiet river road salad school silver soup south square station street sugar summer tea
ticket timetable tomato tower tunnel Tuesday vanilla village water welcome west window winter wood yellow zebra zone
"""
_WORDS = _VOCABULARY.split()
_SHEET, _PHOTOGRAPH = (720, 540), (960, 720)
_MARGIN, _HEADING, _TEXT = 48, 60, 42
_WOOD = (190, 140, 95)
_LINES = 6
"""Lines of a sheet, with its heading."""


def draw_line(seed: int) -> tuple[str, Image.Image]:
    """A text and a picture of it: 18 to 33 pixels high, of any shade, with noise, blurred and not quite level."""
    rng = default_rng([seed, 1])
    text = _text(rng)
    font = ImageFont.load_default(int(rng.integers(18, 34)))
    dark, light = _color(rng, 0, 90), _color(rng, 165, 256)
    ink, ground = (dark, light) if rng.random() < 0.7 else (light, dark)
    left, top, right, bottom = font.getbbox(text)
    border = int(rng.integers(3, 8))
    picture = Image.new("RGB", (int(right - left) + 2 * border, int(bottom - top) + 2 * border), ground)
    ImageDraw.Draw(picture).text((border - left, border - top), text, font=font, fill=ink)
    picture = picture.rotate(rng.uniform(-1.2, 1.2), Image.Resampling.BICUBIC, fillcolor=ground)
    picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0, 0.9)))
    return text, _noisy(np.asarray(picture, np.float64), rng, rng.uniform(0, 28))


def draw_photograph(seed: int) -> tuple[tuple[str, ...], Image.Image]:
    """Six texts and a photograph of a sheet with them, taken at a slight angle under uneven light."""
    rng = default_rng([seed, 2])
    sheet = Image.new("RGB", _SHEET, (250, 246, 235))
    pen, ink = ImageDraw.Draw(sheet), _color(rng, 0, 80)
    fonts = [ImageFont.load_default(_TEXT if row else _HEADING) for row in range(_LINES)]
    texts = tuple(_fitting(rng, font) for font in fonts)
    for row, (text, font) in enumerate(zip(texts, fonts, strict=True)):
        pen.text((_MARGIN, _MARGIN + 76 * row), text, font=font, fill=ink)
    width, height = _PHOTOGRAPH
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * _SHEET
    seen = (corners - np.array(_SHEET) / 2) * 1.15 + np.array(_PHOTOGRAPH) / 2 + rng.uniform(-18, 18, (4, 2))
    table = (synthetic_image(height, width, seed, 1)[0, :, :, None] * _WOOD).astype(np.uint8)
    mask = Image.new("L", _SHEET, 255)
    warp = [float(c) for c in _perspective(seen, corners)]
    flat, cut = (
        i.transform(_PHOTOGRAPH, Image.Transform.PERSPECTIVE, warp, Image.Resampling.BICUBIC) for i in (sheet, mask)
    )
    picture = Image.composite(flat, Image.fromarray(table), cut).filter(ImageFilter.GaussianBlur(0.7))
    light = rng.uniform(0.6, 0.75) + 0.3 * np.linspace(0, 1, width)[None, :] * np.linspace(1, 0.6, height)[:, None]
    return texts, _noisy(np.asarray(picture, np.float64) * light[..., None], rng, 5)


def _text(rng: Generator) -> str:
    """A price, a date or a few words."""
    kind = rng.integers(9)
    if kind < 2:
        return f"{rng.choice(_WORDS)} {rng.integers(1, 100)}.{rng.integers(0, 100):02d}"
    if kind == 2:
        return f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.{rng.integers(1990, 2030)}"
    text = str(rng.choice(_WORDS))
    while len(text) < rng.integers(8, 24):
        text += f" {rng.choice(_WORDS)}"
    return text.capitalize() if kind < 6 else text


def _fitting(rng: Generator, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    """A text that fits on the sheet."""
    while font.getlength(text := _text(rng)) > _SHEET[0] - 2 * _MARGIN:
        pass
    return text


def _color(rng: Generator, low: int, high: int) -> tuple[int, int, int]:
    red, green, blue = (int(v) for v in rng.integers(low, high, 3))
    return red, green, blue


def _noisy(pixels: NDArray[np.float64], rng: Generator, deviation: float) -> Image.Image:
    return Image.fromarray(np.clip(pixels + rng.normal(0, deviation, pixels.shape), 0, 255).astype(np.uint8))


def _perspective(source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pillow's coefficients of the projection that takes four points to four others."""
    rows = [
        row
        for (x, y), (u, v) in zip(source, target, strict=True)
        for row in ([x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y])
    ]
    return np.asarray(np.linalg.solve(np.array(rows), target.ravel()))
