"""The style sheet: a color has one meaning in both themes."""

import itertools
import re

import pytest

from intloom.report.template import asset, style

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
