"""The watchdog: it bites after the limit, never before, and names the oldest unfinished instruction."""

import random
from typing import Any

import pytest

from intloom.hw.control.watchdog import CANDIDATES, LIMIT_BITS, Watchdog
from intloom.hw.spec.isa import COUNT_BITS, Unit
from intloom.hw.spec.regs import Cause
from tests.hw.streams import made, run

_NEWEST = (1 << COUNT_BITS) - 1


def _simulate(body: Any, dog: Watchdog) -> None:
    run(dog, body)


@pytest.mark.parametrize(("limit", "running"), [(0, 1), (5, 0)])
def test_it_sleeps_without_a_limit_or_a_program(limit: int, running: int) -> None:
    dog = made(Watchdog)

    async def body(ctx: Any) -> None:
        ctx.set(dog.limit, limit)
        ctx.set(dog.running, running)
        for _ in range(100):
            await ctx.tick()
        assert not ctx.get(dog.port.valid)

    _simulate(body, dog)


def test_every_bit_of_the_limit_counts(rng: random.Random) -> None:
    """A limit of any length is counted down from its first cycle on, one a cycle."""
    dog = made(Watchdog)

    async def body(ctx: Any) -> None:
        ctx.set(dog.running, 1)
        for bit in range(8, 32):
            limit = 1 << bit | rng.getrandbits(bit)
            ctx.set(dog.limit, limit)
            ctx.set(dog.progress, 1)
            await ctx.tick().repeat(3)
            ctx.set(dog.progress, 0)
            await ctx.tick()
            for cycle in range(40):
                assert ctx.get(dog.left) == limit - cycle
                assert not ctx.get(dog.port.valid), bit
                await ctx.tick()

    _simulate(body, dog)


@pytest.mark.parametrize("bit", range(LIMIT_BITS))
def test_a_limit_of_any_single_bit_ends(bit: int) -> None:
    """When as good as all of its cycles have passed."""
    dog = made(Watchdog)

    async def body(ctx: Any) -> None:
        ctx.set(dog.running, 1)
        ctx.set(dog.limit, 1 << bit)
        await ctx.tick().repeat(3)
        ctx.set(dog.left, 0)
        await ctx.tick().repeat(Watchdog.LATENCY)
        assert ctx.get(dog.port.valid)

    _simulate(body, dog)


def _state(rng: random.Random) -> tuple[list[tuple[int, bool]], int]:
    """Suspects, of which some exist, and the instruction that dispatch holds."""
    *indices, dispatch_index = rng.sample(range(1 << COUNT_BITS), CANDIDATES)
    return [(index, rng.random() < 0.5) for index in indices], dispatch_index


def _show(ctx: Any, dog: Watchdog, candidates: list[tuple[int, bool]], dispatch_index: int) -> None:
    for number, (index, exists) in enumerate(candidates):
        ctx.set(dog.candidates[number], {"valid": exists, "index": index})
    ctx.set(dog.dispatch_index, dispatch_index)


def _blamed(candidates: list[tuple[int, bool]], dispatch_index: int, before: int = 0) -> tuple[int, Unit]:
    """Whom the watchdog blames for these candidates, of which some are present.

    For `before` cycles, with progress, all of them are the newest instructions.
    """
    dog = made(Watchdog)
    blamed: list[tuple[int, Unit]] = []

    async def body(ctx: Any) -> None:
        ctx.set(dog.limit, 2 * CANDIDATES)
        ctx.set(dog.running, 1)
        if before:
            ctx.set(dog.progress, 1)
            _show(ctx, dog, [(_NEWEST - 1, True)] * (CANDIDATES - 1), _NEWEST)
            await ctx.tick().repeat(before)
            ctx.set(dog.progress, 0)
        _show(ctx, dog, candidates, dispatch_index)
        await ctx.tick().until(dog.port.valid)
        fault = ctx.get(dog.port.fault)
        assert Cause(fault.cause) is Cause.WATCHDOG
        blamed.append((fault.index, Unit(fault.unit)))
        # The fault is stable until reset, whatever happens to the candidates.
        for index in (0, 1, _NEWEST):
            _show(ctx, dog, [(index, True)] * (CANDIDATES - 1), index)
            await ctx.tick().repeat(CANDIDATES + 3)
            held = ctx.get(dog.port.fault)
            assert ctx.get(dog.port.valid)
            assert (held.index, Unit(held.unit)) == blamed[0]

    _simulate(body, dog)
    return blamed[0]


def test_it_blames_the_oldest_instruction(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        candidates, dispatch_index = _state(rng)
        assert _blamed(candidates, dispatch_index) == Watchdog.oldest(candidates, dispatch_index)


@pytest.mark.parametrize("number", range(CANDIDATES - 1))
def test_every_bit_of_a_candidate_is_reported_and_compared(number: int, rng: random.Random) -> None:
    """Alone: an index and the one with all bits inverted. Against another one, from which one bit differs."""
    absent = [(0, False)] * (CANDIDATES - 1)
    value, bit = rng.randrange(_NEWEST), rng.randrange(COUNT_BITS)
    for index in (value, value ^ _NEWEST):
        candidates = [*absent[:number], (index, True), *absent[number + 1 :]]
        assert _blamed(candidates, _NEWEST) == Watchdog.oldest(candidates, _NEWEST)
        other = rng.choice([k for k in range(CANDIDATES - 1) if k != number])
        candidates[other] = (index ^ 1 << bit, True)
        assert _blamed(candidates, _NEWEST) == Watchdog.oldest(candidates, _NEWEST)


@pytest.mark.parametrize("phase", range(CANDIDATES))
@pytest.mark.parametrize("number", range(CANDIDATES))
def test_the_least_limit_covers_the_scans_at_every_phase(number: int, phase: int) -> None:
    """A candidate, or dispatch, becomes the oldest in the last cycle with progress."""
    candidates = [(_NEWEST - 1, True)] * (CANDIDATES - 1)
    dispatch_index = _NEWEST
    if number < len(candidates):
        candidates[number] = (0, True)
    else:
        dispatch_index = 0
    expected = Watchdog.oldest(candidates, dispatch_index)
    assert _blamed(candidates, dispatch_index, 3 * CANDIDATES + phase) == expected


@pytest.mark.parametrize("limit", [0, 1, 2, 2 * CANDIDATES, 60])
def test_random_activity_follows_the_model(limit: int, rng: random.Random) -> None:
    """Silences about as long as the limit; the fault comes in the model's cycle, and names whom the model blames."""
    for _ in range(5):
        dog = made(Watchdog)
        life: list[bool] = []
        faults: list[tuple[int, int, int]] = []
        cases: list[tuple[list[tuple[int, bool]], int]] = []

        async def body(ctx: Any, dog: Watchdog = dog, life: Any = life, faults: Any = faults, w: Any = cases) -> None:
            ctx.set(dog.limit, limit)
            for cycle in range(400):
                w.append(_state(rng) if not cycle or life[-1] else w[-1])
                lives = not cycle or rng.random() < 1.5 / (limit + 1)
                running, alive = rng.choice([(0, 0), (0, 1), (1, 1)]) if lives else (1, 0)
                ctx.set(dog.running, running)
                ctx.set(dog.progress, alive)
                _show(ctx, dog, *w[-1])
                if ctx.get(dog.port.valid):
                    fault = ctx.get(dog.port.fault)
                    faults.append((cycle, fault.index, fault.unit))
                    return
                life.append(lives)
                await ctx.tick()

        run(dog, body)
        assert [cycle for cycle, *_ in faults] == [c for c in [Watchdog.model(limit, [*life, True])] if c is not None]
        if limit >= 2 * CANDIDATES and faults:
            assert faults[0][1:] == Watchdog.oldest(*cases[faults[0][0] - Watchdog.LATENCY])
