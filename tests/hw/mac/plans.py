"""Random loop plans."""

from __future__ import annotations

import random

from intloom.hw.mac.issue.loop_setup import precomputed
from intloom.hw.spec.isa import COUNT_BITS, SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams

_ADDRESSES = 1 << SCRATCH_BITS


def random_plan(rng: random.Random, params: HardwareParams, **fixed: int) -> dict[str, int]:
    """A loop plan with random addresses and coordinates, except for the fixed members."""
    out_h, out_w = rng.randint(1, 7), rng.randint(1, 9)
    ring = rng.choice((0, rng.randrange(1, _ADDRESSES)))
    strips = -(-out_h * out_w // params.strip)
    length, longer = divmod(out_h * out_w, strips)
    plan = {
        **{name: rng.randint(1, 3) for name in ("kernel_h", "kernel_w", "in_blocks", "out_blocks")},
        **{name: rng.getrandbits(SCRATCH_BITS) for name in ("in_base", "in_plane", "in_block_step")},
        **{name: rng.randrange(ring or _ADDRESSES) for name in ("row_first", "row_stride", "row_tap")},
        **{name: rng.randint(1, 4) for name in ("stride_h", "stride_w")},
        **{name: rng.randint(1, 20) for name in ("in_h", "in_w")},
        "packed": rng.randrange(2),
        "depthwise": 0,
        "reach_h": rng.randint(1, 9),
        "reach_w": rng.randint(1, 5),
        "column_rows": rng.randint(1, 12),
        "iy0": rng.randint(-9, 9),
        "ix0": rng.randint(-9, 9),
        "column_tap": rng.randint(1, 15),
        "in_ring": ring,
        "dilation_h": rng.randint(1, 15),
        "zp_in": rng.randint(-128, 127),
        "out_h": out_h,
        "out_w": out_w,
        "strips": strips,
        "length": length,
        "longer": longer,
        "index": rng.getrandbits(COUNT_BITS),
        **fixed,
    }
    return plan | precomputed(plan)
