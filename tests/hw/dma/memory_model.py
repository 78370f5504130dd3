"""Memory behind AXI channels for Amaranth's simulator: latency, random pauses, words hashed from their address."""

import random
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from intloom.hw.spec.params import HardwareParams

FACTOR = int("9E3779B97F4A7C15F39CC0605CEDC835" * 8, 16)
"""As wide as the widest word, so that all bits of a word change."""


def content(word: int, params: HardwareParams) -> int:
    """What memory holds at a word: different everywhere, easy to expect."""
    return (word * FACTOR + 0x1234567) % (1 << params.word_bits)


NO_ERRORS: Mapping[int, int] = MappingProxyType({})


def read_memory(
    bursts: Any,
    r: Any,
    params: HardwareParams,
    rng: random.Random,
    latency: int,
    rate: float,
    limit: int,
    errors: Mapping[int, int] = NO_ERRORS,
    contents: Mapping[int, int] = MappingProxyType({}),
) -> Callable[[Any], Any]:
    """Serves bursts in order, each beat `latency` cycles after its burst at least, `limit` bursts outstanding.

    `errors` holds the responses of the words that do not answer OKAY, `contents` words that are not those of `content`.
    """

    async def process(ctx: Any) -> None:
        queue: deque[tuple[int, int, bool]] = deque()
        open_bursts = 0
        cycle = 0
        ctx.set(bursts.ready, 1)
        while True:
            *_, asked, taken, word, beats = await ctx.tick().sample(
                bursts.valid & bursts.ready, r.valid & r.ready, bursts.payload.addr, bursts.payload.beats_less_one
            )
            cycle += 1
            if taken:
                open_bursts -= queue.popleft()[2]
            if asked:
                assert (word % (4096 // params.word_bytes)) + beats < 4096 // params.word_bytes, "4 KiB crossed"
                assert beats < params.burst_words
                queue += [(cycle + latency, word + i, i == beats) for i in range(beats + 1)]
                open_bursts += 1
            ctx.set(bursts.ready, int(open_bursts < limit and rng.random() < rate))
            holds = bool(queue) and queue[0][0] <= cycle
            stays = ctx.get(r.valid) and not taken
            offer = holds and (stays or rng.random() < rate)
            ctx.set(r.valid, int(offer))
            if offer:
                _, at, last = queue[0]
                word = contents[at] if at in contents else content(at, params)
                ctx.set(r.payload, {"id": 0, "data": word, "resp": errors.get(at, 0), "last": last})

    return process
