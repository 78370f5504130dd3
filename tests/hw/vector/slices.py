"""Stimulus and recording for components that process slices."""

import random
from collections.abc import Callable
from typing import Any

from intloom.hw.spec.params import HardwareParams, preset

SMALL = preset("small")


WIDTHS = [8, 4, 2, 1]


def with_lanes(lanes: int) -> HardwareParams:
    """Parameters with this many vector lanes."""
    return SMALL.replace(vector_lanes=lanes)


def to_bytes(number: int, count: int) -> bytes:
    """A number as little-endian bytes."""
    return number.to_bytes(count, "little")


def to_int(data: bytes) -> int:
    """Little-endian bytes as a number."""
    return int.from_bytes(data, "little")


def as_int8(byte: int) -> int:
    """A byte as a signed number."""
    return byte - 256 if byte > 127 else byte


async def idle_cycles(ctx: Any, rng: random.Random, valid: Any) -> None:
    """A random number of idle cycles, then valid."""
    ctx.set(valid, 0)
    while rng.random() < 0.3:
        await ctx.tick()
    ctx.set(valid, 1)


def record(valid: Any, value: Any, found: list[Any]) -> Callable[[Any], Any]:
    """Append `value` to `found` in every cycle in which it is valid."""

    async def watch(ctx: Any) -> None:
        async for *_, is_valid, now in ctx.tick().sample(valid, value):
            if is_valid:
                found.append(now)

    return watch
