"""The wait board: no row's waits are met before they are, nor long after; each row and each unit counts by itself."""

import random
from itertools import combinations, product
from typing import Any

import pytest

from intloom.hw.control.waits import ROWS, UNITS, WaitChecker
from intloom.hw.spec.isa import COUNT_BITS
from tests.hw.streams import made, run

NEEDED = WaitChecker.LATENCY + ROWS
"""Cycles in which every row has had its turn."""


class Row:
    """What the bench knows of a row."""

    def __init__(self) -> None:
        self.waits = [0] * UNITS
        self.ready = False
        self.opened = 0
        self.patience = 0


class Environment:
    """Queues, dispatch and units around a board; `pace` is how often a unit finishes an instruction."""

    def __init__(self, rng: random.Random, pace: float) -> None:
        self.rng, self.pace = rng, pace
        self.board = made(WaitChecker)
        self.rows = [Row() for _ in range(ROWS)]
        self.counts = [0] * UNITS

    def _show_ready(self, ctx: Any) -> None:
        ctx.set(self.board.ready, sum(row.ready << i for i, row in enumerate(self.rows)))

    async def _fill(self, ctx: Any, number: int) -> None:
        """Give a row its next waits, one a cycle in any order; then it is ready."""
        board, row = self.board, self.rows[number]
        order = self.rng.sample(range(UNITS), UNITS)
        row.waits = [max(0, c + self.rng.randint(-9, 3)) for c in self.counts]
        if self.rng.getrandbits(1):
            # Only the wait that is written last is not met.
            row.waits = [min(wait, c) for wait, c in zip(row.waits, self.counts, strict=True)]
            row.waits[order[-1]] = self.counts[order[-1]] + self.rng.randint(1, 3)
        for unit in order:
            ctx.set(board.write, 1)
            ctx.set(board.write_row, number)
            ctx.set(board.write_unit, unit)
            ctx.set(board.write_wait, row.waits[unit])
            await ctx.tick()
        ctx.set(board.write, 0)
        row.ready, row.patience = True, 0
        self._show_ready(ctx)

    async def queues(self, ctx: Any) -> None:
        """Fill rows and take them when they are open."""
        number = 0
        while min(row.opened for row in self.rows) < 30:
            # Often the same row again: what was compared for its last instruction must not count for the next one.
            number = self.rng.choice((number, self.rng.randrange(ROWS)))
            row = self.rows[number]
            if not row.ready and self.rng.random() < 0.2:
                await self._fill(ctx, number)
            elif row.ready and ctx.get(self.board.met[number]) and self.rng.random() < 0.5:
                row.ready = False
                row.opened += 1
                self._show_ready(ctx)
            # They count with `write` only.
            for port in (self.board.write_row, self.board.write_unit, self.board.write_wait):
                ctx.set(port, self.rng.getrandbits(len(port)))
            await ctx.tick()

    async def units(self, ctx: Any) -> None:
        while True:
            done = [self.rng.random() < self.pace for _ in self.counts]
            ctx.set(self.board.done, sum(bit << i for i, bit in enumerate(done)))
            await ctx.tick()
            self.counts = [count + bit for count, bit in zip(self.counts, done, strict=True)]

    async def check(self, ctx: Any) -> None:
        async for *_, met, ready in ctx.tick().sample(self.board.met, self.board.ready):
            for number, row in enumerate(self.rows):
                if ready >> number & 1 and row.ready:
                    self._check_row(number, row, bool(met >> number & 1))

    def _check_row(self, number: int, row: Row, met: bool) -> None:
        holds = WaitChecker.model(self.counts, row.waits)
        assert holds or not met, f"row {number} opened too early"
        row.patience = row.patience + 1 if holds and not met else 0
        assert row.patience <= NEEDED, f"row {number} must open"


@pytest.mark.parametrize("pace", [0.02, 0.3])
def test_rows_open_when_and_only_when_their_waits_are_met(pace: float, seed: int) -> None:
    environment = Environment(random.Random(seed), pace)
    run(environment.board, environment.queues, background=[environment.units, environment.check])
    assert all(count > 30 for count in environment.counts)


@pytest.mark.parametrize("number", range(ROWS))
def test_a_row_opens_after_the_latency(number: int, rng: random.Random) -> None:
    """A cycle more at most for every other row that waits, for what does not come, and none for one that is met."""
    others = [row for row in range(ROWS) if row != number]
    for count in range(ROWS):
        for rivals in combinations(others, count):
            # The last `done` comes while any of the rows is compared.
            for phase in range(count + 2):
                _open_one(number, rivals, rng, phase)
    _open_one(number, tuple(others), rng, 0, others_met=True)


def _open_one(
    number: int, rivals: tuple[int, ...], rng: random.Random, phase: int, *, others_met: bool = False
) -> None:
    board = made(WaitChecker)
    unit, cycles = rng.randrange(UNITS), 0

    async def bench(ctx: Any) -> None:
        nonlocal cycles
        for row in (number, *rivals):
            for other in range(UNITS):
                ctx.set(board.write, 1)
                ctx.set(board.write_row, row)
                ctx.set(board.write_unit, other)
                ctx.set(board.write_wait, (other == unit) if row == number else 9 * (not others_met))
                await ctx.tick()
        ctx.set(board.write, 0)
        ctx.set(board.ready, sum(1 << row for row in (number, *rivals)))
        await ctx.tick().repeat(4 * ROWS + phase)
        ctx.set(board.done, 1 << unit)
        while not ctx.get(board.met[number]) and cycles <= NEEDED:
            await ctx.tick()
            ctx.set(board.done, 0)
            cycles += 1
        assert ctx.get(board.met) == sum(1 << row for row in (number, *rivals * others_met))

    run(board, bench)
    slack = 0 if others_met else len(rivals)
    assert WaitChecker.LATENCY <= cycles <= WaitChecker.LATENCY + slack, f"row {number} beside {rivals}"


@pytest.mark.parametrize("number", range(ROWS))
def test_the_wait_that_is_written_last_counts(number: int) -> None:
    """The row alone is compared all the time, also while its waits are written."""
    board = made(WaitChecker)

    async def open_row(ctx: Any, waits: list[int]) -> bool:
        ctx.set(board.write_row, number)
        for unit, wait in enumerate(waits):
            ctx.set(board.write, 1)
            ctx.set(board.write_unit, unit)
            ctx.set(board.write_wait, wait)
            await ctx.tick()
        ctx.set(board.write, 0)
        ctx.set(board.ready, 1 << number)
        found = False
        for _ in range(NEEDED):
            await ctx.tick()
            found |= bool(ctx.get(board.met))
        ctx.set(board.ready, 0)
        await ctx.tick()
        return found

    async def bench(ctx: Any) -> None:
        assert await open_row(ctx, [0] * UNITS)
        assert not await open_row(ctx, [0] * (UNITS - 1) + [1])

    run(board, bench)


@pytest.mark.parametrize("bit", range(COUNT_BITS))
def test_every_bit_of_a_count_is_compared(bit: int, rng: random.Random) -> None:
    """Units that have finished one instruction less than a power of two meet waits with their next ones."""
    board = made(WaitChecker)
    units = [*range(UNITS)]

    async def bench(ctx: Any) -> None:
        for unit in units:
            ctx.set(board.counts[unit], (1 << bit) - 1)
        for wait in (1 << bit, (1 << bit) + 1):
            # A row for each unit, which waits for that unit alone.
            for row, unit in product(units, units):
                ctx.set(board.write, 1)
                ctx.set(board.write_row, row)
                ctx.set(board.write_unit, unit)
                ctx.set(board.write_wait, wait * (row == unit))
                await ctx.tick()
            ctx.set(board.write, 0)
            ctx.set(board.ready, (1 << UNITS) - 1)
            met = 0
            for unit in rng.sample(units, UNITS):
                for _ in range(NEEDED):
                    assert ctx.get(board.met) == met, "one instruction is missing"
                    await ctx.tick()
                ctx.set(board.done, 1 << unit)
                await ctx.tick()
                ctx.set(board.done, 0)
                await ctx.tick().repeat(NEEDED)
                met |= 1 << unit
                assert ctx.get(board.met) == met
                assert ctx.get(board.counts[unit]) == wait
            ctx.set(board.ready, 0)
            await ctx.tick()

    run(board, bench)
