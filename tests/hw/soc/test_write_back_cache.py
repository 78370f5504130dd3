"""The write-back cache against a model: what the CPU reads, and what is in memory after every access."""

import random
from typing import Any

import pytest

from intloom.hw.soc.wishbone import CycleType
from intloom.hw.soc.write_back_cache import WriteBackCache
from tests.hw.soc.wishbone_master import LINE_WORDS, pause, read, read_line, write
from tests.hw.streams import run

LINES = 4
WORDS = 3 * LINES * LINE_WORDS
"""Three lines share each slot."""
BASES = (0x1555_5500, 0x2AAA_AA00)
"""Each bit of an address has both values."""


class Model:
    """A direct-mapped cache that writes back, over `ram`."""

    def __init__(self, rng: random.Random) -> None:
        self.ram = [rng.getrandbits(32) for _ in range(WORDS)]
        self.slots: dict[int, tuple[int, list[int], bool]] = {}

    def _line(self, number: int) -> list[int]:
        return self.ram[LINE_WORDS * number : LINE_WORDS * (number + 1)]

    def _clean(self, slot: int) -> None:
        number, words, _ = self.slots[slot]
        self.ram[LINE_WORDS * number : LINE_WORDS * (number + 1)] = words
        self.slots[slot] = number, words, False

    def line(self, number: int) -> list[int]:
        """The words that the CPU sees; the line is in the cache then."""
        slot = number % LINES
        if slot in self.slots and self.slots[slot][0] != number:
            if self.slots[slot][2]:
                self._clean(slot)
            del self.slots[slot]
        return self.slots.setdefault(slot, (number, self._line(number), False))[1]

    def write(self, at: int, value: int, sel: int) -> None:
        """Write the bytes of a word that `sel` names."""
        number = at // LINE_WORDS
        words, mask = self.line(number), sum(0xFF << 8 * i for i in range(4) if sel >> i & 1)
        words[at % LINE_WORDS] = words[at % LINE_WORDS] & ~mask | value & mask
        self.slots[number % LINES] = number, words, True

    def command(self, first: int, last: int, discard: bool) -> None:
        """Clean or invalidate the lines of a range."""
        for slot, (number, _, dirty) in list(self.slots.items()):
            if first <= number <= last and discard:
                del self.slots[slot]
            elif first <= number <= last and dirty:
                self._clean(slot)


class Ram:
    """A slave that answers after a random time; it checks that reads are bursts over whole lines."""

    def __init__(self, cache: WriteBackCache, base: int, words: list[int], rng: random.Random, rate: float) -> None:
        self.cache, self.base, self.words, self.rng, self.rate = cache, base, list(words), rng, rate
        self.reads = self.writes = 0

    async def process(self, ctx: Any) -> None:
        """Answer in the cycle of the access."""
        cache, port = self.cache, self.cache.memory
        while True:
            assert all(ctx.get(~bus.ack | bus.cyc & bus.stb) for bus in (cache.cpu, cache.control))
            answers = bool(ctx.get(port.cyc) and ctx.get(port.stb) and self.rng.random() < self.rate)
            ctx.set(port.ack, answers)
            at = ctx.get(port.adr) - self.base
            assert not answers or ctx.get(port.sel) == 15
            if answers and ctx.get(port.we):
                assert at % LINE_WORDS == self.writes % LINE_WORDS
                self.words[at] = ctx.get(port.dat_w)
                self.writes += 1
            elif answers:
                ends = at % LINE_WORDS == LINE_WORDS - 1
                assert at % LINE_WORDS == self.reads % LINE_WORDS
                assert ctx.get(port.cti) == (CycleType.END_OF_BURST if ends else CycleType.INCREMENTING)
                ctx.set(port.dat_r, self.words[at])
                self.reads += 1
            await ctx.tick()


@pytest.mark.parametrize(("rate", "base"), [(1.0, BASES[0]), (0.4, BASES[1])])
def test_cache_and_memory_equal_the_model_after_every_access(rate: float, base: int, rng: random.Random) -> None:
    cache, model = WriteBackCache(LINES), Model(rng)
    ram = Ram(cache, base, model.ram, rng, rate)
    steps = ["word"] * 4 + ["write"] * 6 + ["line", "clean", "discard", "other", "pause"]
    done = dict.fromkeys(steps, 0)

    async def step(ctx: Any, kind: str) -> None:
        at = rng.randrange(WORDS)
        if kind == "write":
            value, sel = rng.getrandbits(32), rng.randrange(16)
            await write(ctx, cache.cpu, base + at, value, sel)
            model.write(at, value, sel)
        elif kind == "word":
            assert await read(ctx, cache.cpu, base + at) == model.line(at // LINE_WORDS)[at % LINE_WORDS]
        elif kind == "line":
            number = at // LINE_WORDS
            assert await read_line(ctx, cache.cpu, base + number * LINE_WORDS) == model.line(number)
        elif kind == "pause":
            await pause(ctx, rng.choice([cache.cpu, cache.control]), rng)
        elif kind == "other":
            # Another master, of which the cache knows nothing.
            ram.words[at] = model.ram[at] = rng.getrandbits(32)
        else:
            last = min(WORDS - 1, at + rng.choice([0, 1, LINE_WORDS, WORDS]))
            register = WriteBackCache.CLEAN if kind == "clean" else WriteBackCache.INVALIDATE
            bytes_at = [4 * (base + at) + rng.randrange(4), 4 * (base + last) + rng.randrange(4)]
            await write(ctx, cache.control, WriteBackCache.FIRST, bytes_at[0])
            # A read between the two does not change the range.
            assert await read(ctx, cache.control, rng.randrange(3)) == 0
            await write(ctx, cache.control, register, bytes_at[1])
            model.command(at // LINE_WORDS, last // LINE_WORDS, kind == "discard")

    async def cpu(ctx: Any) -> None:
        for kind in rng.choices(steps, k=400):
            await step(ctx, kind)
            assert ram.words == model.ram, kind
            done[kind] += 1

    run(cache, cpu, background=[ram.process])
    assert all(done.values())


@pytest.mark.parametrize("member", ["cyc", "stb"])
def test_the_walk_of_reset_answers_no_other_device(member: str) -> None:
    cache = WriteBackCache(LINES)

    async def bench(ctx: Any) -> None:
        # One of the two is high alone while the bus belongs to another device, or pauses.
        ctx.set(getattr(cache.control, member), 1)
        for _ in range(2 * LINES + 2):
            assert not ctx.get(cache.control.ack)
            await ctx.tick()

    run(cache, bench)


def test_a_register_that_is_written_during_the_walk_of_reset_has_its_value(rng: random.Random) -> None:
    cache, model = WriteBackCache(LINES), Model(rng)
    ram = Ram(cache, BASES[0], model.ram, rng, 1)
    lines = [BASES[0] + LINE_WORDS * number for number in range(2)]

    async def cpu(ctx: Any) -> None:
        await write(ctx, cache.control, WriteBackCache.FIRST, 4 * lines[1])
        for line in lines:
            await write(ctx, cache.cpu, line, 5)
        await write(ctx, cache.control, WriteBackCache.CLEAN, 0xFFFF_FFFF)

    run(cache, cpu, background=[ram.process])
    assert (ram.words[0], ram.words[LINE_WORDS]) == (model.ram[0], 5)


def test_accesses_take_the_cycles_of_the_docstring(rng: random.Random) -> None:
    cache, model = WriteBackCache(LINES), Model(rng)
    ram = Ram(cache, BASES[0], model.ram, rng, 1)
    cycles = 0

    async def count(ctx: Any) -> None:
        nonlocal cycles
        async for _ in ctx.tick():
            cycles += 1

    async def timed(wanted: int, access: Any) -> None:
        before = cycles
        await access
        assert cycles - before == wanted

    async def cpu(ctx: Any) -> None:
        await ctx.tick()
        # The rest of reset's walk over all lines, a tag, a line from memory, the hit.
        await timed(2 * LINES - 1 + 2 + LINE_WORDS + 2, read(ctx, cache.cpu, BASES[0]))
        await timed(2 * LINE_WORDS, read_line(ctx, cache.cpu, BASES[0]))
        assert await read(ctx, cache.control, WriteBackCache.CLEAN) == 0
        await timed(2, write(ctx, cache.cpu, BASES[0], 5))
        await write(ctx, cache.control, WriteBackCache.FIRST, 0)
        # The command, all slots, and one of them twice with its line between.
        await timed(1 + 2 * LINES + LINE_WORDS + 2, write(ctx, cache.control, WriteBackCache.CLEAN, 0xFFFF_FFFF))
        assert ram.words[0] == 5
        await timed(1 + 2 * LINES, write(ctx, cache.control, WriteBackCache.CLEAN, 0xFFFF_FFFF))

    run(cache, cpu, background=[ram.process, count])
    assert (ram.reads, ram.writes) == (LINE_WORDS, LINE_WORDS)
