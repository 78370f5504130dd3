"""Random moves as the walkers take them, and the window that they stay in."""

import random
from typing import Any

from intloom.hw.dma.runs import move_layout, offset_bits
from intloom.hw.spec.params import HardwareParams


def random_fields(rng: random.Random, params: HardwareParams, longest: int) -> dict[str, int]:
    """Any move with rows of at most `longest` words; often its rows touch, and often its planes."""
    offsets = 1 << offset_bits(params)
    move = {name: rng.getrandbits(20) for name, _ in move_layout(params)}
    if "coded" in move:
        move["coded"] = rng.choice([0, rng.randint(1, longest)])
    n0, n1, n2 = rng.choice([1, 2, 5, 16, rng.randint(1, longest)]), rng.randint(1, 5), rng.randint(1, 3)
    run = move.get("coded") or n0
    row = rng.choice([run, rng.randrange(offsets), run + 3])
    plane = rng.choice([row * (n1 - 1) + run, rng.randrange(offsets)])
    move |= {"dram": rng.randrange(offsets), "target": rng.randint(0, 1), "n0": n0, "n1": n1, "n2": n2}
    return move | {"dram_s1": row, "dram_s2": plane % offsets}


def set_window(ctx: Any, window: Any, base: int, limit: int | None = None) -> None:
    """Drive a `WindowPort`: `limit` words from `base` on, without one all words up to the end of the address space."""
    limit = (1 << len(window.base)) - base if limit is None else limit
    ctx.set(window.base, base)
    ctx.set(window.end, base + limit)
    ctx.set(window.limit, min(limit, (1 << len(window.limit)) - 1))
