"""Run control: no start while busy or in error, no clearing before the bus is idle, in every cycle as its model."""

import random
from itertools import product
from typing import Any

import pytest

from intloom.hw.control.run_control import RunControl
from tests.hw.streams import made, run

HALT_CYCLES = 4
"""Cycles that a halt takes to reach every unit. A number of its own: the RTL's constant is under test."""


async def _pulse(ctx: Any, signal: Any) -> None:
    ctx.set(signal, 1)
    await ctx.tick()
    ctx.set(signal, 0)


def _simulate(body: Any) -> None:
    run_control = made(RunControl)

    async def testbench(ctx: Any) -> None:
        await body(ctx, run_control)

    run(run_control, testbench)


async def _launch(ctx: Any, s: RunControl) -> None:
    await _pulse(ctx, s.start)
    assert ctx.get(s.launch)
    await ctx.tick()
    assert not ctx.get(s.launch)


async def _drain(ctx: Any, s: RunControl) -> None:
    """The bus stays busy for a while: halt holds, clear does not come; then it comes for one cycle."""
    await ctx.tick()
    for _ in range(10):
        assert (ctx.get(s.halt), ctx.get(s.clear), ctx.get(s.busy)) == (1, 0, 1)
        await ctx.tick()
    ctx.set(s.bus_idle, 1)
    for _ in range(3):
        assert not ctx.get(s.clear)
        await ctx.tick()
    assert ctx.get(s.clear)
    await ctx.tick()
    assert (ctx.get(s.halt), ctx.get(s.clear), ctx.get(s.busy)) == (0, 0, 0)


def test_a_program_that_ends_is_done_once_the_bus_is_idle() -> None:
    async def body(ctx: Any, s: RunControl) -> None:
        await _launch(ctx, s)
        await ctx.tick()
        assert ctx.get(s.running)
        ctx.set(s.start, 1)
        assert not ctx.get(s.launch)
        ctx.set(s.start, 0)
        await _pulse(ctx, s.ended)
        assert not ctx.get(s.done)
        await _drain(ctx, s)
        assert (ctx.get(s.done), ctx.get(s.error)) == (1, 0)
        await _pulse(ctx, s.start)
        assert not ctx.get(s.done)

    _simulate(body)


def test_a_fault_holds_until_reset() -> None:
    async def body(ctx: Any, s: RunControl) -> None:
        await _launch(ctx, s)
        ctx.set(s.fault, 1)
        assert ctx.get(s.error_event)
        await ctx.tick().repeat(2)
        ctx.set(s.start, 1)
        for _ in range(5):
            assert (ctx.get(s.error), ctx.get(s.halt), ctx.get(s.busy), ctx.get(s.launch)) == (1, 1, 1, 0)
            assert not ctx.get(s.error_event)
            await ctx.tick()
        ctx.set(s.start, 0)
        await _pulse(ctx, s.reset)
        assert not ctx.get(s.error)
        await _drain(ctx, s)
        assert (ctx.get(s.done), ctx.get(s.error)) == (0, 0)

    _simulate(body)


def test_a_reset_while_a_program_ends_takes_its_done_away() -> None:
    async def body(ctx: Any, s: RunControl) -> None:
        await _launch(ctx, s)
        await _pulse(ctx, s.ended)
        await _pulse(ctx, s.reset)
        await _drain(ctx, s)
        assert not ctx.get(s.done)

    _simulate(body)


def test_units_get_time_to_halt_before_the_bus_counts_as_idle() -> None:
    """A burst that went out while the halt was on its way shows a cycle late."""

    async def body(ctx: Any, s: RunControl) -> None:
        ctx.set(s.bus_idle, 1)
        await _launch(ctx, s)
        await _pulse(ctx, s.ended)
        for _ in range(HALT_CYCLES):
            assert not ctx.get(s.clear)
            await ctx.tick()
        ctx.set(s.bus_idle, 0)
        await _drain(ctx, s)

    _simulate(body)


OUTPUTS = ("idle", "launch", "running", "halt", "clear", "busy", "done", "error", "done_event", "error_event")


CYCLES = 6000
"""At the lowest rate of events about 20 runs, of which two in three end without a fault."""


@pytest.mark.parametrize("often", [0.02, 0.1, 0.4])
def test_every_cycle_follows_the_model(often: float, rng: random.Random) -> None:
    """Commands, ends and faults at any moment, together and in any order, on a bus that is busy in spells."""
    s = made(RunControl)
    steps: list[dict[str, int]] = []
    shown: list[dict[str, int]] = []

    async def body(ctx: Any) -> None:
        bus_idle = 1
        for _ in range(CYCLES):
            bus_idle ^= rng.random() < 0.1
            chances = {"start": often, "fault": often / 2, "ended": often, "reset": often / 4}
            step = {name: int(rng.random() < chance) for name, chance in chances.items()}
            steps.append(step | {"bus_idle": bus_idle})
            for name, value in steps[-1].items():
                ctx.set(getattr(s, name), value)
            shown.append({name: ctx.get(getattr(s, name)) for name in OUTPUTS})
            await ctx.tick()

    run(s, body)
    for cycle, (found, (state, wanted)) in enumerate(zip(shown, RunControl.model(steps), strict=True)):
        assert found == wanted, (cycle, state)
    assert all(any(cycle[name] for cycle in shown) for name in OUTPUTS)


NOTHING = {"start": 0, "fault": 0, "ended": 0, "reset": 0, "bus_idle": 1}
START, FAULT, ENDED, RESET = ({**NOTHING, name: 1} for name in ("start", "fault", "ended", "reset"))
RUNNING = [START, NOTHING]
DRAINING = [*RUNNING, ENDED]
CLEARING = [*DRAINING, *[NOTHING] * (HALT_CYCLES + 2)]
PATHS = {
    "idle": [],
    "launch": [START],
    "run": RUNNING,
    "halted": [*RUNNING, FAULT],
    "drain": DRAINING,
    "clear": CLEARING,
    "cleared": [*CLEARING, NOTHING],
}
"""Inputs that lead from IDLE to each state."""


def test_every_event_in_every_state() -> None:
    """All combinations of commands, fault, end and an idle bus in each state, and what follows."""
    back = [RESET, *[NOTHING] * (HALT_CYCLES + 6)]
    steps: list[dict[str, int]] = []
    for path, events in product(PATHS.values(), product((0, 1), repeat=5)):
        steps += [*path, dict(zip(NOTHING, events, strict=True)), *[NOTHING] * 3, *back]
    s = made(RunControl)
    shown: list[dict[str, int]] = []

    async def body(ctx: Any) -> None:
        for step in steps:
            for name, value in step.items():
                ctx.set(getattr(s, name), value)
            shown.append({name: ctx.get(getattr(s, name)) for name in OUTPUTS})
            await ctx.tick()

    run(s, body)
    covered = set()
    for cycle, (step, found, (state, wanted)) in enumerate(zip(steps, shown, RunControl.model(steps), strict=True)):
        assert found == wanted, (cycle, state, step)
        covered.add((state, *step.values()))
    assert covered == {(state, *events) for state in PATHS for events in product((0, 1), repeat=5)}


def test_a_halt_lasts_until_every_unit_has_seen_it() -> None:
    """With a bus that is always idle, `clear` comes a fixed time after the end: no sooner than units can answer."""

    async def body(ctx: Any, s: RunControl) -> None:
        ctx.set(s.bus_idle, 1)
        await _launch(ctx, s)
        await _pulse(ctx, s.ended)
        cycles = 0
        while not ctx.get(s.clear):
            await ctx.tick()
            cycles += 1
        assert cycles == HALT_CYCLES + 3

    _simulate(body)
