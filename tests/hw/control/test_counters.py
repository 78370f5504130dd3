"""Performance counters: one cause a cycle, nothing outside a run."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from amaranth.sim import Simulator

from hw.control.counters import Counters
from hw.spec.isa import QUEUED_UNITS
from hw.spec.regs import COUNTERS, Stall


def _expected(unit: str, event: dict[str, int]) -> list[str]:
    names = [f"{unit}_DONE"] if event["done"] else []
    if event["busy"]:
        return [*names, f"{unit}_BUSY"]
    if event["stall"]:
        return [*names, f"{unit}_STALL_{Stall(event['stall'].bit_length() - 1).name}"]
    if event["waiting"]:
        return [*names, f"{unit}_STALL_WAIT"]
    return [*names, f"{unit}_STALL_NO_INSTRUCTION"] if event["empty"] else names


def test_each_cycle_counts_once(seed: int) -> None:
    rng = random.Random(seed)
    bench = Counters()
    expected: Counter[str] = Counter()

    async def body(ctx: Any) -> None:
        ctx.set(bench.launch, 1)
        await ctx.tick()
        ctx.set(bench.launch, 0)
        ctx.set(bench.running, 1)
        for _ in range(200):
            expected["CYCLES"] += 1
            for name in ("read_beat", "write_beat"):
                value = rng.randint(0, 1)
                ctx.set(getattr(bench, name), value)
                expected[f"{name.upper()}S"] += value
            for unit in QUEUED_UNITS:
                waiting = rng.randint(0, 1)
                event = {"busy": rng.randint(0, 1), "stall": rng.choice([0, 0, 4, 8, 16]), "waiting": waiting}
                event |= {"empty": 0 if waiting else rng.randint(0, 1), "done": rng.randint(0, 1)}
                for name, value in event.items():
                    ctx.set(bench.units[unit][name], value)
                expected.update(_expected(unit.name, event))
            await ctx.tick()
        ctx.set(bench.running, 0)
        for unit in QUEUED_UNITS:
            ctx.set(bench.units[unit].done, 0)
        for _ in range(5):
            await ctx.tick()
        for i, register in enumerate(COUNTERS):
            assert ctx.get(bench.values[i]) == expected[register.name], register.name
        ctx.set(bench.launch, 1)
        await ctx.tick()
        assert not any(ctx.get(bench.values[i]) for i in range(len(COUNTERS)))

    simulator = Simulator(bench)
    simulator.add_clock(1e-8)
    simulator.add_testbench(body)
    simulator.run()
    assert all(expected[r.name] for r in COUNTERS), "every counter must have been tried"
