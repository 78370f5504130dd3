"""The style sheet: text has a contrast of at least 4.5 in both themes, and a color has one meaning."""

import itertools
import re

import pytest

from intloom.report.template import asset, style

TEXT = {
    "ink": ("bg", "card", "track"),
    "dim": ("bg", "card", "track"),
    "accent": ("bg", "card"),
    "good": ("card", "bg", "goodbg"),
    "bad": ("card", "bg", "badbg"),
    **{f"{unit}-text": ("bg",) for unit in ("load", "mac", "vec", "store")},
}
"""Colors of text, and the colors behind it."""
MEANINGS = (
    ("load", "mac", "vec", "store", "flow-weights", "equal", "inside", "bad"),
    ("work", "partial", "no_instruction", "wait", "memory", "weights", "accumulators", "other", "equal", "bad"),
)
SAME = {("flow-read", "load"), ("flow-written", "store")}


def theme(start):
    block = style().split(start, 1)[1].split("}", 1)[0]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


LIGHT = theme(":root {")
THEMES = {"light": LIGHT, "dark": LIGHT | theme(':root[data-theme="dark"] {')}


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", THEMES)
def test_text_is_readable(name):
    colors = THEMES[name]
    weak = {
        (text, behind): round(contrast(colors[text], colors[behind]), 2)
        for text, grounds in TEXT.items()
        for behind in grounds
        if contrast(colors[text], colors[behind]) < 4.5
    }
    assert not weak


@pytest.mark.parametrize("name", THEMES)
def test_a_color_has_one_meaning(name):
    colors = THEMES[name]
    for group in MEANINGS:
        for a, b in itertools.combinations(group, 2):
            assert colors[a] != colors[b], (a, b)
    assert all(colors[a] == colors[b] for a, b in SAME)


def test_both_dark_themes_are_one():
    media = re.findall(r"[^{]*\{([^}]*)\}", style().split("@media (prefers-color-scheme: dark)", 1)[1])[0]
    assert dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", media)) == theme(':root[data-theme="dark"] {')


def test_the_theme_is_stored():
    assert "localStorage.setItem" in asset("theme.js")
