"""Random field values, biased towards the limits and towards values that need a field's highest bit."""

import random

from intloom.hw.spec.isa import BY_KIND, Field, Kind
from intloom.hw.spec.params import HardwareParams

_EXTREME = 0.25


def any_value(rng: random.Random, field: Field) -> int:
    """A legal value: often a limit or a power of two, else uniform."""
    low, high = field.minimum, field.maximum
    if rng.random() >= _EXTREME:
        return rng.randint(low, high)
    bit = 1 << rng.randrange(field.width)
    near = (low, high, bit, -bit, bit - 1, high - bit, (high + 1) // 2)
    return min(max(rng.choice(near), low), high)


def any_fields(rng: random.Random, kind: Kind, params: HardwareParams) -> dict[str, int]:
    """Any legal value for every field of an instruction; fields that the hardware lacks have their default."""
    body = (f for f in BY_KIND[kind].body if not f.requires or getattr(params, f.requires))
    return {f.name: any_value(rng, f) for f in body}


def some(rng: random.Random, kind: Kind, *names: str) -> dict[str, int]:
    """Any legal values for fields whose values need to satisfy no condition."""
    return {name: any_value(rng, BY_KIND[kind].field(name)) for name in names}


def size(rng: random.Random, limit: int, most: int) -> int:
    """A loop count from 1 up to `limit` and `most`: mostly small, now and then as large as allowed."""
    top = max(1, min(limit, most))
    roll = rng.random()
    if roll < 0.5:
        return rng.randint(1, min(top, 4))
    if roll < 0.9:
        return rng.randint(1, min(top, 20))
    return rng.choice((top, rng.randint(1, top)))


def sizes(rng: random.Random, limits: tuple[int, ...], budget: int) -> list[int]:
    """Loop counts whose product is at most `budget`, in random order of choice."""
    counts = [1] * len(limits)
    for n in rng.sample(range(len(limits)), len(limits)):
        counts[n] = size(rng, limits[n], budget)
        budget //= counts[n]
    return counts


def step(rng: random.Random, count: int, reach: int, bits: int) -> int:
    """A step of `bits` bits: anything for a count of 1, else up to `reach`, in either direction where it wraps."""
    top = 1 << bits
    if count == 1:
        return rng.choice((rng.randrange(top), top - 1, 0))
    most = max(0, min(top - 1, reach // (count - 1)))
    value = rng.choice((0, 1, rng.randint(0, most), rng.randint(0, min(most, 8)), most))
    # A step of less than the address's bits cannot be negative.
    return (-value) % top if bits >= _ADDRESS_BITS and rng.random() < 0.2 else value


_ADDRESS_BITS = 20
