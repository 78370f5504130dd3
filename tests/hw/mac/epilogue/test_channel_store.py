"""Channel store: one set is read while the other is written."""

import random
from typing import Any

import pytest

from intloom.hw.mac.epilogue.channel_store import ChannelStore
from intloom.hw.mac.weights.constants_loader import ConstantKind
from intloom.hw.spec.arith import wrap
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.idle import check_idle
from tests.hw.mac.constants import write_constant
from tests.hw.streams import made, run

NANO = preset("nano")
_CORRECTIONS = (0, 1, -1, 12345, (1 << 31) - 1, -(1 << 31))
_BLOCKS = 10
"""So many that any two channels are written in both orders: the later one would overwrite the other."""
Channels = list[tuple[int, int, int]]


async def _write_block(ctx: Any, store: ChannelStore, words: list[int], rng: random.Random) -> None:
    """Biases and scales in any order, among constants of other kinds; then wait until the last has been stored."""
    for index, word in rng.sample([*enumerate(words)], len(words)):
        while rng.random() < 0.3:
            await _write_other(ctx, store, rng)
        await write_constant(ctx, store, ConstantKind.CHANNEL, index, word & 0xFFFFFFFF)
    for _ in words:
        await _write_other(ctx, store, rng)
    await ctx.tick().repeat(4)


async def _write_other(ctx: Any, store: ChannelStore, rng: random.Random) -> None:
    kind = rng.choice((ConstantKind.NONE, ConstantKind.TABLE, ConstantKind.RESIDUAL))
    await write_constant(ctx, store, kind, rng.getrandbits(8), rng.getrandbits(8))


async def _read_block(
    ctx: Any, store: ChannelStore, expected: Channels, params: HardwareParams, rng: random.Random
) -> None:
    """Read groups in any order, with gaps; biases come first, scales at the requantizers' scale stage."""
    late, lanes, count = store.SCALE_LATENCY, params.lanes, len(expected) // params.lanes
    corrections = [wrap(rng.choice(_CORRECTIONS), params.acc_bits) for _ in range(40)]
    groups = [rng.randrange(count) if rng.random() < 0.8 else None for _ in range(40)]
    for cycle in range(len(groups) + late):
        for latency, names in ((store.BIAS_LATENCY, ("bias",)), (late, ("mantissa", "exponent"))):
            group = groups[cycle - latency] if 0 <= cycle - latency < len(groups) else None
            for lane in range(lanes) if group is not None else ():
                found = tuple(ctx.get(getattr(store, name)[lane]) for name in names)
                bias, *scale = expected[group * lanes + lane]
                corrected = wrap(bias - corrections[cycle - latency], 32)
                assert found == ((corrected,) if names == ("bias",) else tuple(scale))
        now = groups[cycle] if cycle < len(groups) else None
        ctx.set(store.read, now is not None)
        ctx.set(store.group, now or 0)
        asked = cycle - store.CORRECTION_STAGE
        for lane in range(lanes):
            ctx.set(store.corrections[lane], corrections[asked] if 0 <= asked < len(groups) else 99)
        await ctx.tick()


@pytest.mark.parametrize(("lanes", "cols", "acc_bits"), [(1, 4, 32), (2, 4, 20), (4, 4, 32), (1, 32, 31)])
def test_channels_are_read_while_others_are_written(lanes: int, cols: int, acc_bits: int, rng: random.Random) -> None:
    params = NANO.replace(lanes=lanes, cols=cols, strip=32, acc_bits=acc_bits)
    store = made(ChannelStore, params)
    biases = [[rng.randrange(-(1 << 31), 1 << 31) for _ in range(params.cols)] for _ in range(_BLOCKS)]
    scales = [
        [rng.getrandbits(rng.choice((24, rng.randint(1, 24)))) | rng.getrandbits(6) << 24 for _ in block]
        for block in biases
    ]
    written = done = 0

    async def writer(ctx: Any) -> None:
        nonlocal written
        for block in range(len(biases)):
            # A block's set is free once the block two before it has been read.
            while done < block - 1:
                await ctx.tick()
            ctx.set(store.write_set, block % 2)
            await _write_block(ctx, store, biases[block] + scales[block], rng)
            written += 1

    async def reader(ctx: Any) -> None:
        nonlocal done
        for block in range(len(biases)):
            while written <= block:
                await ctx.tick()
            ctx.set(store.read_set, block % 2)
            channels = zip(biases[block], scales[block], strict=True)
            expected = [ChannelStore.model(bias, 0, scale, params.mantissa_bits) for bias, scale in channels]
            await _read_block(ctx, store, expected, params, rng)
            done += 1

    run(store, writer, reader)
    assert done == len(biases)


def test_memories_are_read_on_request_only(rng: random.Random) -> None:
    """A memory that is large enough for a macro."""
    check_idle(ChannelStore(NANO.replace(lanes=1, cols=32, strip=32)), rng, "read")
