"""Outstanding bursts: the counts of the model for every coincidence of requests and ends."""

import random
from typing import Any

from intloom.hw.control.outstanding import CHANNELS, Outstanding
from tests.hw.streams import made, run


def test_counts_are_those_of_the_model(rng: random.Random) -> None:
    bench = made(Outstanding)
    steps: list[dict[str, int]] = []
    reads = writes = most_reads = most_writes = 0
    # Up to the largest counts, down again, and about as many requests as ends.
    for share in (*[0.95] * 600, *[0.1] * 600, *[0.5] * 200):
        step = {f"{channel}_{wire}": int(rng.random() < 0.7) for channel in CHANNELS for wire in ("valid", "ready")}
        step |= {"ar_valid": int(reads < 255 and rng.random() < share), "aw_valid": int(writes < 255)}
        step["read_end"] = int(reads > 0 and rng.random() > share)
        step["write_end"] = int(writes > 0 and rng.random() > share)
        reads += (step["ar_valid"] & step["ar_ready"]) - step["read_end"]
        writes += (step["aw_valid"] & step["aw_ready"]) - step["write_end"]
        most_reads, most_writes = max(most_reads, reads), max(most_writes, writes)
        steps.append(step)
    assert (most_reads, most_writes) == (255, 255)

    async def testbench(ctx: Any) -> None:
        for step, expected in zip(steps, Outstanding.model(steps), strict=True):
            for name, value in step.items():
                ctx.set(getattr(bench, name), value)
            await ctx.tick()
            assert (ctx.get(bench.reads), ctx.get(bench.writes), ctx.get(bench.offered)) == expected

    run(bench, testbench)
