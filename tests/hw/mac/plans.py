"""Random loop plans."""

import random

from intloom.hw.mac.issue.loop_setup import precomputed
from intloom.hw.spec.isa import COORDINATE_BITS, COUNT_BITS, SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams

_ADDRESSES = 1 << SCRATCH_BITS


def _limit(rng: random.Random) -> tuple[int, int]:
    """An input's rows or columns, in as many bits as an instruction has, and where windows begin: near its ends."""
    limit = rng.randint(1, (1 << rng.choice((4, 5, rng.randint(5, COORDINATE_BITS)))) - 1)
    most = (1 << COORDINATE_BITS) - 1
    return limit, max(-most, min(most, rng.choice((0, 0, limit, limit, -most)) + rng.randint(-9, 9)))


def random_plan(rng: random.Random, params: HardwareParams, ring: int | None = None, **fixed: int) -> dict[str, int]:
    """A loop plan with random addresses and coordinates, except for the fixed members; `ring` 0 is none."""
    out_h, out_w = rng.randint(1, 7), rng.randint(1, 9)
    if ring is None:
        ring = rng.choice((0, rng.randrange(1, _ADDRESSES)))
    strips = -(-out_h * out_w // params.strip)
    length = -(-out_h * out_w // strips)
    (in_h, iy0), (in_w, ix0) = _limit(rng), _limit(rng)
    plan = {
        **{name: rng.randint(1, 3) for name in ("kernel_h", "kernel_w", "in_blocks", "out_blocks")},
        **{name: rng.getrandbits(SCRATCH_BITS) for name in ("in_base", "in_plane", "in_block_step")},
        **{name: rng.randrange(ring or _ADDRESSES) for name in ("row_first", "row_stride", "row_tap")},
        **{name: rng.randint(1, 4) for name in ("stride_h", "stride_w")},
        "in_h": in_h,
        "in_w": in_w,
        "packed": rng.randrange(2),
        "continue_sums": 0,
        "iy0": iy0,
        "ix0": ix0,
        "column_tap": rng.randint(1, 15),
        "in_ring": ring,
        "dilation_h": rng.randint(1, 15),
        "zp_in": rng.randint(-128, 127),
        "out_w": out_w,
        "strips": strips,
        "length": length,
        "shorter": length * strips - out_h * out_w,
        "index": rng.getrandbits(COUNT_BITS),
        **fixed,
    }
    return plan | precomputed(plan)
