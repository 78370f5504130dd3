"""Sequencer: one operation at a time, faults and illegal instructions."""

import random
from itertools import zip_longest
from typing import Any

import pytest

from intloom.hw.spec.isa import COUNT_BITS, Instruction, Kind, encode, make
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import Cause, Stall
from intloom.hw.vector.operation import OPERATION_LAYOUT, VECTOR_KINDS
from intloom.hw.vector.sequencer import Sequencer
from tests.hw.instructions import BenchInstructions
from tests.hw.streams import made, run

NANO = preset("nano").replace(scratch_kib=4, vector_softmax=True, vector_norm=True, vector_depthwise=True)


class Reports:
    """Drives `step` and `write` at random; checks what the unit reports in every cycle."""

    def __init__(self, sequencer: Sequencer, rng: random.Random) -> None:
        self.sequencer, self.rng = sequencer, rng

    async def check(self, ctx: Any) -> None:
        sequencer, unit, in_flight = self.sequencer, self.sequencer.unit, False
        while True:
            step, write = self.rng.random() < 0.3, self.rng.random() < 0.3
            ctx.set(sequencer.step, step)
            ctx.set(sequencer.write, write)
            *_, taken, started, done, busy, stall = await ctx.tick().sample(
                unit.valid & unit.ready, unit.started, unit.done, unit.busy, unit.stall
            )
            assert started == taken, "an instruction starts when it is taken"
            assert in_flight or not done
            assert busy == (step or write)
            assert stall == (in_flight and not busy) << Stall.MEMORY
            in_flight = bool(taken or (in_flight and not done))


def test_the_sequencer_starts_one_operation_at_a_time(rng: random.Random) -> None:
    sequencer = made(Sequencer, NANO)
    maker = BenchInstructions(rng, NANO)
    instructions = [maker.instruction(rng.choice(VECTOR_KINDS)) for _ in range(12)]
    done = 0

    def offer(ctx: Any, instruction: Instruction) -> None:
        ctx.set(sequencer.unit.valid, 1)
        ctx.set(sequencer.unit.instruction, int.from_bytes(encode(instruction), "little"))

    async def bench(ctx: Any) -> None:
        nonlocal done
        unit = sequencer.unit
        # `finished` is high while nothing runs.
        ctx.set(sequencer.finished, 1)
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
                assert not ctx.get(unit.done), "`finished` counts from the cycle after `start`"
                await ctx.tick()
                ctx.set(sequencer.finished, cycle < Sequencer.LATENCY)
            operation = OPERATION_LAYOUT.from_bits(ctx.get(sequencer.operation).as_bits())
            wanted = Sequencer.model(instruction, NANO)
            assert wanted is not None
            assert {name: operation[name] for name in wanted} == wanted
            while rng.random() < 0.6:
                assert not ctx.get(unit.done)
                assert not ctx.get(unit.ready)
                await ctx.tick()
            ctx.set(sequencer.finished, 1)
            assert ctx.get(unit.done)
            done += 1
            await ctx.tick()
            assert ctx.get(unit.idle)
            if following is not None and not at_once:
                while rng.random() < 0.3:
                    await ctx.tick()
                offer(ctx, following)

    run(sequencer, bench, background=[Reports(sequencer, rng).check])
    assert done == len(instructions)


@pytest.mark.parametrize("index", [0x55555, 0xAAAAA])
def test_a_range_fault_stops_the_sequencer(index: int) -> None:
    sequencer = made(Sequencer, NANO)

    async def bench(ctx: Any) -> None:
        unit = sequencer.unit
        ctx.set(sequencer.idle, 1)
        ctx.set(unit.valid, 1)
        ctx.set(unit.index, index)
        ctx.set(unit.instruction, int.from_bytes(encode(make(Kind.VCOPY)), "little"))
        await ctx.tick()
        ctx.set(unit.index, ~index)
        await ctx.tick().repeat(Sequencer.LATENCY)
        ctx.set(sequencer.read_fault, 1)
        await ctx.tick()
        ctx.set(sequencer.read_fault, 0)
        await ctx.tick()
        assert not ctx.get(unit.idle), "a request may still be made in this cycle"
        await ctx.tick()
        ctx.set(sequencer.finished, 1)
        for _ in range(5):
            fault = (ctx.get(unit.fault), ctx.get(unit.cause), ctx.get(unit.fault_index))
            assert fault == (1, Cause.SCRATCH_RANGE, index)
            assert ctx.get(sequencer.stop)
            assert ctx.get(unit.idle)
            assert not ctx.get(unit.done)
            assert not ctx.get(unit.ready)
            await ctx.tick()

    run(sequencer, bench)


@pytest.mark.parametrize("runs", [False, True])
def test_a_halt_stops_the_sequencer(runs: bool) -> None:
    sequencer = made(Sequencer, NANO)

    async def bench(ctx: Any) -> None:
        unit = sequencer.unit
        ctx.set(unit.instruction, int.from_bytes(encode(make(Kind.VCOPY)), "little"))
        ctx.set(unit.valid, runs)
        await ctx.tick().repeat(1 + Sequencer.LATENCY)
        ctx.set(unit.halt, 1)
        for cycle in range(9):
            ctx.set(unit.valid, runs or cycle > 0)
            assert ctx.get(unit.ready) == (cycle == 0 and not runs)
            assert ctx.get(sequencer.stop) == (cycle >= 2)
            ctx.set(sequencer.idle, cycle >= 5)
            assert ctx.get(unit.idle) == (not runs or cycle >= 5)
            assert not ctx.get(unit.done)
            await ctx.tick()

    run(sequencer, bench)


@pytest.mark.parametrize("kind", VECTOR_KINDS)
@pytest.mark.parametrize(("multiply", "average"), [(True, True), (False, False)])
def test_illegal_instructions_are_refused(kind: Kind, multiply: bool, average: bool, rng: random.Random) -> None:
    params = NANO.replace(vector_multiply=multiply, vector_average=average)
    legal = BenchInstructions(rng, params).instruction(kind)
    variants = [legal, *([legal.with_fields(m2=legal["m1"] ^ 1)] if "m1" in legal.values else [])]
    for instruction in variants:
        sequencer = made(Sequencer, params)

        async def bench(ctx: Any, sequencer: Sequencer = sequencer, instruction: Instruction = instruction) -> None:
            unit, wanted = sequencer.unit, Sequencer.model(instruction, params)
            index = rng.getrandbits(COUNT_BITS)
            ctx.set(unit.valid, 1)
            ctx.set(unit.index, index)
            ctx.set(unit.instruction, int.from_bytes(encode(instruction), "little"))
            await ctx.tick()
            ctx.set(unit.valid, 0)
            await ctx.tick().repeat(Sequencer.LATENCY - 1)
            assert ctx.get(sequencer.start) == (wanted is not None)
            assert ctx.get(unit.fault) == (wanted is None)
            if wanted is None:
                assert ctx.get(unit.cause) == Cause.BAD_FIELD
                assert ctx.get(unit.fault_index) == index
            else:
                operation = OPERATION_LAYOUT.from_bits(ctx.get(sequencer.operation).as_bits())
                assert {name: operation[name] for name in wanted} == wanted

        run(sequencer, bench)
