"""The fault latch keeps the first fault, and of several at once the first source's."""

from __future__ import annotations

from typing import Any

import pytest

from hw.control.faults import SOURCES, FaultLatch
from tests.hw.streams import run


@pytest.mark.parametrize("sources", [[0], [3], [SOURCES - 1], [2, 4], [1, 0, 5]])
def test_the_first_fault_stays(sources: list[int]) -> None:
    latch = FaultLatch()

    async def body(ctx: Any) -> None:
        for source in range(SOURCES):
            ctx.set(latch.sources[source].fault, {"cause": 1 + source, "unit": source % 5, "index": 100 + source})
        await ctx.tick()
        assert not ctx.get(latch.latched.valid)
        for source in sources:
            ctx.set(latch.sources[source].valid, 1)
        await ctx.tick()
        for source in range(SOURCES):
            ctx.set(latch.sources[source].valid, 1)
        await ctx.tick().repeat(3)
        assert ctx.get(latch.latched.valid)
        assert ctx.get(latch.latched.fault).index == 100 + min(sources)

    run(latch, body)
