"""Stimulus that the benches of the depthwise components share."""

import random
from typing import Any

from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.vector.depthwise_constants import DepthwiseConstants

NANO = preset("nano").replace(vector_lanes=4, vector_depthwise=True)
PAIRED = NANO.replace(lut_products=0, multiplier_bits=25)
SHAPES: dict[str, HardwareParams] = {
    "nano": NANO,
    "nano_by_byte": NANO.replace(vector_lanes=1),
    "small_exact": preset("small").replace(vector_lanes=4, vector_depthwise=True, match="exact", mantissa_bits=13),
    "base": preset("base"),
    "base_paired": preset("base").replace(lut_products=7, multiplier_bits=25),
    "large_in_quarters": preset("large").replace(vector_lanes=8, match="exact", mantissa_bits=8, acc_bits=20),
}
"""Groups of 1 to 8 channels, and slices of 1 to 4 groups."""


async def store(ctx: Any, port: Any, kernel: tuple[int, int], words: list[bytes], rng: random.Random) -> None:
    """Write all constants of a block, with pauses."""
    for (kind, row, column), word in zip(DepthwiseConstants.model(*kernel), words, strict=True):
        while rng.random() < 0.2:
            await ctx.tick()
        enables = dict.fromkeys(("weights", "biases", "scales"), 0) | {kind: 1 << column}
        where = {"row": row, "group": 0} if kind == "weights" else {"row": rng.randrange(16), "group": row}
        ctx.set(port, {**enables, **where, "word": int.from_bytes(word, "little")})
        await ctx.tick()
        ctx.set(port, dict.fromkeys((*enables, *where, "word"), 0))
