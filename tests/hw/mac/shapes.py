"""Hardware parameters for component tests."""

import random

from amaranth.hdl import Shape
from amaranth.lib import data

from intloom.hw.spec.params import preset

NANO = preset("nano")
_WIDE = NANO.replace(rows=4, cols=8, weight_kib=64)
_COLUMNS = NANO.replace(cols=64, strip=64, weight_kib=64)
OUTPUT_SHAPES = {
    "nano": NANO,
    "tall": NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64),
    "wide": _WIDE,
    "64 columns": _COLUMNS,
    "whole": NANO.replace(lanes=4),
}
"""For readout and write: words wider and narrower than a block, and one group per pixel."""
WEIGHT_SHAPES = {
    "nano": NANO,
    "wide": _WIDE,
    "64 columns": _COLUMNS,
    "deep": NANO.replace(rows=16, cols=4, axi_data_bits=128, weight_kib=64),
    "base": preset("base"),
}
"""For readers of the weight memory: tiles with more and with fewer words than a word has bytes."""
RATES = [1.0, 0.5]
"""Probability that a neighbor is ready."""


def any_descriptor(layout: data.StructLayout, rng: random.Random) -> dict[str, int]:
    """Any value for every member of a descriptor."""
    shapes = {name: Shape.cast(field.shape) for name, field in layout}
    return {name: rng.getrandbits(s.width) - (s.signed << s.width - 1) for name, s in shapes.items()}
