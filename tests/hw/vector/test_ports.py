"""Components at the scratchpad ports, with random grants, and the sequencer."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import pytest

from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.isa import Instruction, Kind, encode, make
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import Cause
from intloom.hw.vector.operand_fetcher import OperandFetcher, operand_layout
from intloom.hw.vector.operation import OPERATION_LAYOUT, VECTOR_KINDS
from intloom.hw.vector.raster_walker import RasterWalker
from intloom.hw.vector.result_writer import ResultWriter
from intloom.hw.vector.sequencer import Sequencer
from tests.hw.streams import cycles_through, run, sink, source
from tests.hw.vector.cases import InstructionGenerator

BYTES = 4
NANO = preset("nano").replace(scratch_kib=4)
RATES = [(1.0, 1.0, 1.0), (0.5, 1.0, 0.5), (1.0, 0.4, 1.0), (0.7, 0.7, 0.7)]


def _reader(port: Any, words: list[int], rng: random.Random, grant: float) -> Callable[[Any], Any]:
    """A memory behind a read port: grants at random, data `READ_LATENCY` cycles later and noise otherwise."""

    async def process(ctx: Any) -> None:
        due: list[int | None] = [None] * READ_LATENCY
        waiting: int | None = None
        while True:
            data = due.pop(0)
            ctx.set(port.data, rng.getrandbits(8 * BYTES) if data is None else data)
            ready = rng.random() < grant
            ctx.set(port.ready, ready)
            *_, valid, addr = await ctx.tick().sample(port.valid, port.addr)
            assert waiting is None or (valid and addr == waiting), "a request was dropped or changed"
            waiting = addr if valid and not ready else None
            due.append(words[addr] if valid and ready else None)

    return process


@pytest.mark.parametrize(("offer", "grant", "take"), RATES)
def test_words_are_fetched_in_order(offer: float, grant: float, take: float, rng: random.Random) -> None:
    fetch = OperandFetcher(BYTES)
    words = [rng.randbytes(BYTES) for _ in range(64)]
    fill = rng.randrange(256)
    items = [
        {
            "addr": rng.randrange(64),
            "inside": rng.random() < 0.7,
            "tap": {"first": rng.randrange(2), "last": rng.randrange(2)},
        }
        for _ in range(200)
    ]
    taken: list[int] = []

    async def configure(ctx: Any) -> None:
        ctx.set(fetch.fill, fill)

    run(
        fetch, configure, source(fetch.i, items, rng, offer), sink(fetch.o, taken, len(items), rng, take),
        background=[_reader(fetch.port, [int.from_bytes(word, "little") for word in words], rng, grant)],
    )  # fmt: skip
    found = [operand_layout(BYTES).from_bits(bits) for bits in taken]
    assert [(w.word.to_bytes(BYTES, "little"), w.tap.first, w.tap.last) for w in found] == [
        (OperandFetcher.model(item, words, fill), item["tap"]["first"], item["tap"]["last"]) for item in items
    ]


def test_a_word_comes_after_the_latency(rng: random.Random) -> None:
    fetch = OperandFetcher(BYTES)
    reader = _reader(fetch.port, list(range(64)), rng, 1.0)
    assert cycles_through(fetch, {"addr": 3, "inside": 1}, background=[reader]) == OperandFetcher.LATENCY


def test_a_word_is_fetched_every_cycle(rng: random.Random) -> None:
    fetch = OperandFetcher(BYTES)
    items = [{"addr": k % 64, "inside": 1} for k in range(100)]
    taken: list[int] = []
    cycles = 0

    async def count(ctx: Any) -> None:
        nonlocal cycles
        while len(taken) < len(items):
            await ctx.tick()
            cycles += 1

    reader = _reader(fetch.port, list(range(64)), rng, 1.0)
    run(fetch, source(fetch.i, items, rng), sink(fetch.o, taken, len(items), rng), count, background=[reader])
    assert cycles <= len(items) + OperandFetcher.LATENCY + 1


def test_a_halted_fetch_only_completes_buffered_requests(rng: random.Random) -> None:
    fetch = OperandFetcher(BYTES)
    requests = 0

    async def bench(ctx: Any) -> None:
        nonlocal requests
        ctx.set(fetch.i.payload.inside, 1)
        ctx.set(fetch.i.valid, 1)
        await ctx.tick().repeat(4)
        ctx.set(fetch.halt, 1)
        await ctx.tick().repeat(4)
        assert ctx.get(fetch.port.valid)
        assert not ctx.get(fetch.idle)
        ctx.set(fetch.port.ready, 1)
        for _ in range(8):
            *_, valid, idle = await ctx.tick().sample(fetch.port.valid, fetch.idle)
            assert valid != idle
            requests += valid
        assert ctx.get(fetch.idle)

    run(fetch, bench)
    assert requests == 2


@pytest.mark.parametrize(("push", "grant"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.4), (0.6, 0.6)])
def test_results_are_written_in_order(push: float, grant: float, rng: random.Random) -> None:
    writer = ResultWriter(BYTES, 8)
    config = {"base": 7, "plane": 90, "line": 20, "step": 2, "blocks": 2, "lines": 3, "pixels": 5}
    config |= {
        "line_repeat": 1,
        "pixel_repeat": 1,
        "line_at": 0,
        "pixel_at": 0,
        "line_stride": 1,
        "pixel_stride": 1,
        "prefill": 0,
    }
    words = [rng.getrandbits(8 * BYTES) for _ in RasterWalker.model(config)]
    written: list[tuple[int, int, int]] = []
    mask = rng.randrange(1, 1 << BYTES)

    async def results(ctx: Any) -> None:
        """Take a credit for each word, and push it a few cycles later."""
        ctx.set(writer.config, config)
        ctx.set(writer.mask, mask)
        ctx.set(writer.start, 1)
        await ctx.tick()
        ctx.set(writer.start, 0)
        flying: list[int | None] = [None] * 5
        left = list(words)
        while left or any(word is not None for word in flying):
            take_credit = bool(left) and ctx.get(writer.credit_available) and rng.random() < push
            ctx.set(writer.take_credit, take_credit)
            flying.append(left.pop(0) if take_credit else None)
            word = flying.pop(0)
            ctx.set(writer.push, word is not None)
            ctx.set(writer.word, rng.getrandbits(8 * BYTES) if word is None else word)
            assert ctx.get(writer.active)
            await ctx.tick()
        ctx.set(writer.push, 0)
        await ctx.tick().until(~writer.active)
        assert len(written) == len(words)
        assert ctx.get(writer.idle)

    async def memory(ctx: Any) -> None:
        port, waiting = writer.port, None
        while True:
            ready = rng.random() < grant
            ctx.set(port.ready, ready)
            *_, valid, addr, word, mask_now = await ctx.tick().sample(port.valid, port.addr, port.data, port.mask)
            request = (addr, word, mask_now)
            assert waiting is None or (valid and request == waiting), "a request was dropped or changed"
            waiting = request if valid and not ready else None
            if valid and ready:
                written.append(request)

    run(writer, results, background=[memory])
    assert written == [(item, word, mask) for item, word in ResultWriter.model(config, words)]


def test_the_sequencer_starts_one_operation_at_a_time(rng: random.Random) -> None:
    sequencer = Sequencer(NANO)
    maker = InstructionGenerator(rng, NANO)
    instructions = [maker.instruction(rng.choice(VECTOR_KINDS)) for _ in range(12)]
    done = 0

    def offer(ctx: Any, instruction: Instruction) -> None:
        ctx.set(sequencer.unit.valid, 1)
        ctx.set(sequencer.unit.instruction, int.from_bytes(encode(instruction), "little"))

    async def bench(ctx: Any) -> None:
        nonlocal done
        unit = sequencer.unit
        offer(ctx, instructions[0])
        for instruction, following in zip_longest(instructions, instructions[1:]):
            assert ctx.get(unit.ready)
            assert ctx.get(unit.started)
            await ctx.tick()
            ctx.set(unit.valid, 0)
            at_once = following is not None and rng.random() < 0.6
            if at_once:
                offer(ctx, following)
            for cycle in range(1, Sequencer.LATENCY + 1):
                assert ctx.get(sequencer.start) == (cycle == Sequencer.LATENCY)
                assert not ctx.get(unit.ready)
                await ctx.tick()
            operation = OPERATION_LAYOUT.from_bits(ctx.get(sequencer.operation).as_bits())
            assert {name: operation[name] for name in OPERATION_LAYOUT.members} == Sequencer.model(instruction, NANO)
            while rng.random() < 0.6:
                assert not ctx.get(unit.done)
                assert not ctx.get(unit.ready)
                await ctx.tick()
            ctx.set(sequencer.finished, 1)
            assert ctx.get(unit.done)
            done += 1
            await ctx.tick()
            ctx.set(sequencer.finished, 0)
            assert ctx.get(unit.idle)
            if following is not None and not at_once:
                while rng.random() < 0.3:
                    await ctx.tick()
                offer(ctx, following)

    run(sequencer, bench)
    assert done == len(instructions)


def test_a_range_fault_stops_the_sequencer(rng: random.Random) -> None:
    sequencer = Sequencer(NANO)

    async def bench(ctx: Any) -> None:
        unit = sequencer.unit
        ctx.set(sequencer.idle, 1)
        ctx.set(unit.valid, 1)
        ctx.set(unit.index, 33)
        ctx.set(unit.instruction, int.from_bytes(encode(make(Kind.VCOPY)), "little"))
        await ctx.tick()
        await ctx.tick().repeat(Sequencer.LATENCY)
        ctx.set(sequencer.range_fault, 1)
        await ctx.tick()
        ctx.set(sequencer.range_fault, 0)
        await ctx.tick()
        assert not ctx.get(unit.idle), "a request may still be made in this cycle"
        await ctx.tick()
        ctx.set(sequencer.finished, 1)
        for _ in range(5):
            assert (ctx.get(unit.fault), ctx.get(unit.cause), ctx.get(unit.fault_index)) == (1, Cause.SCRATCH_RANGE, 33)
            assert ctx.get(sequencer.stop)
            assert ctx.get(unit.idle)
            assert not ctx.get(unit.done)
            assert not ctx.get(unit.ready)
            await ctx.tick()

    run(sequencer, bench)


@pytest.mark.parametrize("kind", VECTOR_KINDS)
@pytest.mark.parametrize(("multiply", "average"), [(True, True), (False, False)])
def test_illegal_instructions_are_refused(kind: Kind, multiply: bool, average: bool, rng: random.Random) -> None:
    params = NANO.replace(vector_multiply=multiply, vector_average=average)
    legal = InstructionGenerator(rng, params).instruction(kind)
    variants = [legal, *([legal.with_fields(m2=legal["m1"] ^ 1)] if "m1" in legal.values else [])]
    for instruction in variants:
        sequencer = Sequencer(params)

        async def bench(ctx: Any, sequencer: Sequencer = sequencer, instruction: Instruction = instruction) -> None:
            unit, wanted = sequencer.unit, Sequencer.model(instruction, params)
            ctx.set(unit.valid, 1)
            ctx.set(unit.instruction, int.from_bytes(encode(instruction), "little"))
            await ctx.tick()
            ctx.set(unit.valid, 0)
            await ctx.tick().repeat(Sequencer.LATENCY - 1)
            assert ctx.get(sequencer.start) == (wanted is not None)
            assert ctx.get(unit.fault) == (wanted is None)
            if wanted is None:
                assert ctx.get(unit.cause) == Cause.BAD_FIELD
            else:
                operation = OPERATION_LAYOUT.from_bits(ctx.get(sequencer.operation).as_bits())
                assert {name: operation[name] for name in OPERATION_LAYOUT.members} == wanted

        run(sequencer, bench)
