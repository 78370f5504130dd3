"""Performance counters: one cause a cycle, nothing outside a run."""

import random
from collections import Counter
from typing import Any

import pytest
from amaranth.hdl import ResetInserter, Signal

from intloom.hw.control.counters import STATES, Counters
from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.hw.spec.regs import COUNTER_BITS, COUNTERS, SHORT_COUNTER_BITS, Stall, stall_counter
from tests.hw.streams import made, run

assert COUNTER_BITS == 32, "a counter fills its register"
CYCLES = [register.name for register in COUNTERS].index("CYCLES")


async def _values(ctx: Any, bench: Counters) -> list[int]:
    """All counters, each read at its turn; nothing may count meanwhile."""
    for _ in range(2 * Counters.SCAN_PERIOD + Counters.LATENCY):
        await ctx.tick()
    values = [0] * Counters.SCAN_PERIOD
    for _ in range(Counters.SCAN_PERIOD):
        values[ctx.get(bench.scan_index)] = ctx.get(bench.value)
        await ctx.tick()
    assert not any(values[len(COUNTERS) :]), "turns without a counter must give 0"
    return values[: len(COUNTERS)]


async def _launch(ctx: Any, bench: Counters) -> None:
    ctx.set(bench.launch, 1)
    await ctx.tick()
    ctx.set(bench.launch, 0)


def _simulate(bench: Counters, body: Any) -> None:
    run(bench, body)


def _idle(ctx: Any, bench: Counters) -> None:
    ctx.set(bench.running, 0)
    for unit in QUEUED_UNITS:
        ctx.set(bench.units[unit].done, 0)


@pytest.mark.parametrize("change", [1.0, 0.02], ids=["restless", "steady"])
def test_each_cycle_counts_once(change: float, seed: int) -> None:
    """Events that change in every cycle, and events that last, for two programs one after the other."""
    rng = random.Random(seed)
    bench = made(Counters)
    seen: set[str] = set()

    def new_events(ctx: Any) -> list[str]:
        names = ["CYCLES"]
        for name in ("read_beat", "write_beat"):
            value = rng.randint(0, 1)
            ctx.set(getattr(bench, name), value)
            names += [f"{name.upper()}S"] * value
        for unit in QUEUED_UNITS:
            waiting = rng.randint(0, 1)
            event = {"busy": rng.randint(0, 1), "stall": rng.choice([0, 0, 4, 8, 16]), "waiting": waiting}
            event |= {"empty": 0 if waiting else rng.randint(0, 1), "done": rng.randint(0, 1)}
            for name, value in event.items():
                ctx.set(bench.units[unit][name], value)
            names += Counters.model(unit, event)
        return names

    async def body(ctx: Any) -> None:
        assert not any(await _values(ctx, bench)), "counters must read 0 before any program"
        for cycles in (rng.randint(1800, 2200), rng.randint(1, 60)):
            expected: Counter[str] = Counter()
            await _launch(ctx, bench)
            ctx.set(bench.running, 1)
            names: list[str] = []
            for cycle in range(cycles):
                if not cycle or rng.random() < change:
                    names = new_events(ctx)
                expected.update(names)
                await ctx.tick()
            _idle(ctx, bench)
            found = await _values(ctx, bench)
            assert found == [expected[register.name] for register in COUNTERS]
            seen.update(name for name, count in expected.items() if count > Counters.SCAN_PERIOD)
        await _launch(ctx, bench)
        assert not any(await _values(ctx, bench)), "launch must clear"

    _simulate(bench, body)
    if change == 1.0:
        assert seen == {r.name for r in COUNTERS}, "every counter must have grown past its short count"


def test_only_ends_of_instructions_count_while_no_program_runs() -> None:
    """A unit may end an instruction in the cycle in which the program ends, or in a halt: no end is lost."""
    bench = made(Counters)
    ends = 3

    async def body(ctx: Any) -> None:
        await _launch(ctx, bench)
        for name in ("read_beat", "write_beat"):
            ctx.set(getattr(bench, name), 1)
        for unit in QUEUED_UNITS:
            ctx.set(bench.units[unit], {"busy": 1, "stall": 4, "waiting": 1, "empty": 1, "done": 1})
        await ctx.tick().repeat(ends)
        _idle(ctx, bench)
        found = dict(zip((r.name for r in COUNTERS), await _values(ctx, bench), strict=True))
        assert {name: count for name, count in found.items() if count} == {f"{u.name}_DONE": ends for u in QUEUED_UNITS}

    _simulate(bench, body)


def test_a_value_is_exact_at_its_turn() -> None:
    """While a program runs, too: what is read is the count `LATENCY` cycles ago, carried beyond the short count.

    A pause in each scan, so that the scan reads every short count.
    """
    bench = made(Counters)
    readings: list[tuple[int, int]] = []

    async def body(ctx: Any) -> None:
        await _launch(ctx, bench)
        counts: list[int] = [0]
        for cycle in range((len(STATES) + 2) * Counters.SCAN_PERIOD):
            runs = cycle % Counters.SCAN_PERIOD > 0
            ctx.set(bench.running, runs)
            if ctx.get(bench.scan_index) == CYCLES and cycle > Counters.SCAN_PERIOD:
                readings.append((counts[cycle - Counters.LATENCY], ctx.get(bench.value)))
            counts.append(counts[-1] + runs)
            await ctx.tick()

    _simulate(bench, body)
    assert {count % len(STATES) for count, _ in readings} == {*range(len(STATES))}
    assert all(value == count for count, value in readings)


async def _preload(ctx: Any, bench: Counters, high: int) -> list[int]:
    """Set the upper bits of every counter while nothing counts; the values that the counters then have."""
    low = [value % (1 << SHORT_COUNTER_BITS) for value in await _values(ctx, bench)]
    for _ in range(Counters.LATENCY + 1):
        for row, value in enumerate(low):
            ctx.set(bench.upper.data[row], {"high": high, "top": value >> (SHORT_COUNTER_BITS - 1)})
        await ctx.tick()
    return [high << SHORT_COUNTER_BITS | value for value in low]


def test_every_counter_carries_through_all_of_its_bits() -> None:
    """From values below a power of two, and up to the wrap of the whole register."""
    bench = made(Counters)
    events: list[dict[str, int]] = [{"busy": 1}, {"waiting": 1}, {"empty": 1}]
    events += [{"stall": 1 << s} for s in Stall if s not in (Stall.WAIT, Stall.NO_INSTRUCTION)]
    carried: set[tuple[str, int]] = set()

    async def count(ctx: Any, high: int) -> None:
        before = await _preload(ctx, bench, high)
        assert await _values(ctx, bench) == before
        expected = dict(zip((r.name for r in COUNTERS), before, strict=True))
        ctx.set(bench.running, 1)
        for cycle in range(len(events) << SHORT_COUNTER_BITS):
            event = {"busy": 0, "stall": 0, "waiting": 0, "empty": 0, "done": 1} | events[cycle % len(events)]
            names = ["CYCLES", "READ_BEATS", "WRITE_BEATS"]
            for unit in QUEUED_UNITS:
                ctx.set(bench.units[unit], event)
                names += Counters.model(unit, event)
            for name in names:
                expected[name] = (expected[name] + 1) % (1 << 32)
            await ctx.tick()
        _idle(ctx, bench)
        found = dict(zip((r.name for r in COUNTERS), await _values(ctx, bench), strict=True))
        assert found == expected, f"from {high:#x} upper bits on"
        carried.update((name, (high + 1).bit_length()) for name in found if found[name] >> SHORT_COUNTER_BITS != high)

    async def body(ctx: Any) -> None:
        await _launch(ctx, bench)
        for name in ("read_beat", "write_beat"):
            ctx.set(getattr(bench, name), 1)
        for bits in (0, 13, COUNTER_BITS - SHORT_COUNTER_BITS):
            await count(ctx, (1 << bits) - 1)

    _simulate(bench, body)
    # No unit but MAC has these causes; the counters exist all the same and carry.
    assert {stall_counter(unit, Stall.ACCUMULATORS) for unit in QUEUED_UNITS} <= {name for name, _ in carried}
    assert {name for name, bits in carried if bits > COUNTER_BITS - SHORT_COUNTER_BITS} == {r.name for r in COUNTERS}


def test_a_reset_of_one_cycle_leaves_no_count() -> None:
    """In each cycle after it every counter reads 0, also before the first launch."""
    reset = Signal()
    bench = Counters()
    read: set[int] = set()

    async def body(ctx: Any) -> None:
        await _launch(ctx, bench)
        await _preload(ctx, bench, high=5)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        for _ in range(2 * Counters.SCAN_PERIOD):
            read.add(ctx.get(bench.value))
            await ctx.tick()

    run(ResetInserter(reset)(bench), body)
    assert read == {0}
