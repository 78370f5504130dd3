"""Sequencer: one operation at a time, faults and illegal instructions."""

import random
from typing import Any

import pytest

from intloom.hw.spec.isa import BY_KIND, COUNT_BITS, Instruction, Kind, encode, make
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import Cause, Stall
from intloom.hw.vector.operation import OPERATION_LAYOUT, VECTOR_KINDS
from intloom.hw.vector.sequencer import Sequencer
from intloom.sim.random_programs.values import any_fields
from tests.hw.instructions import BenchInstructions
from tests.hw.streams import made, run

NANO = preset("nano").replace(scratch_kib=4, vector_softmax=True, vector_norm=True, vector_depthwise=True)


class Model:
    """What the docstring says of the instruction that is set up and of the one that runs."""

    def __init__(self) -> None:
        self.operation: Instruction | None = None
        """The last one taken."""
        self.waits = self.runs = self.joins = False
        self.taken_at = self.started_at = self.done_at = -9

    def outputs(self, cycle: int, offered: Instruction | None, finished: bool) -> dict[str, int]:
        """Of a cycle: events and states."""
        ready = not self.waits and (not self.runs or self.joins)
        begins = self.waits and not self.runs and cycle >= max(self.taken_at + Sequencer.LATENCY, self.done_at + 1)
        constants = self._is_depthwise(self.operation) and cycle == self.taken_at + Sequencer.CONSTANTS
        return {
            "ready": ready,
            "started": ready and offered is not None,
            "start": begins,
            "load_constants": constants,
            "joined": self.waits and self.runs,
            "done": self.runs and finished,
            "idle": not (self.waits or self.runs),
        }

    def advance(self, cycle: int, offered: Instruction | None, drains: bool, events: dict[str, int]) -> None:
        """The next cycle."""
        both = self._is_depthwise(offered) and self._is_depthwise(self.operation)
        self.joins = both and not self.waits and drains
        if events["done"]:
            self.runs, self.done_at = False, cycle
        if events["start"]:
            self.waits, self.runs, self.started_at = False, True, cycle
        if events["started"]:
            self.waits, self.operation, self.taken_at = True, offered, cycle

    @staticmethod
    def _is_depthwise(instruction: Instruction | None) -> bool:
        return instruction is not None and instruction.kind is Kind.VDEPTHWISE


def test_events_follow_the_docstring_in_every_cycle(rng: random.Random) -> None:
    """Instructions of all kinds; many are a VDEPTHWISE, which joins the one before. All other inputs are random."""
    sequencer, model = made(Sequencer, NANO), Model()
    maker = BenchInstructions(rng, NANO)
    kinds = [*VECTOR_KINDS, *[Kind.VDEPTHWISE] * 2 * len(VECTOR_KINDS)]
    instructions = [maker.instruction(rng.choice(kinds)) for _ in range(60)]
    joined = 0

    async def bench(ctx: Any) -> None:
        nonlocal joined
        unit, offered, cycle = sequencer.unit, None, 0
        while instructions or offered or model.waits or model.runs:
            if not offered and instructions and rng.random() < 0.7:
                offered = instructions.pop()
                ctx.set(unit.instruction, int.from_bytes(encode(offered), "little"))
            # Both are low in the cycle after `start`.
            finished, drains = (
                cycle != model.started_at + 1 and rng.random() < chance for chance in (0.1 if model.runs else 0.8, 0.5)
            )
            step, write = rng.random() < 0.3, rng.random() < 0.3
            inputs = {"finished": finished, "drains": drains, "step": step, "write": write}
            for name, value in inputs.items():
                ctx.set(getattr(sequencer, name), value)
            ctx.set(unit.valid, offered is not None)
            events = model.outputs(cycle, offered, finished)
            ports = {name: getattr(unit if hasattr(unit, name) else sequencer, name) for name in events}
            assert {name: ctx.get(port) for name, port in ports.items()} == events
            assert ctx.get(unit.busy) == (step or write)
            assert ctx.get(unit.stall) == (not events["idle"] and not (step or write)) << Stall.MEMORY
            model.advance(cycle, offered, drains, events)
            offered = None if events["started"] else offered
            joined += events["joined"]
            await ctx.tick()
            cycle += 1
            if model.operation is not None:
                wanted, operation = Sequencer.model(model.operation, NANO), ctx.get(sequencer.operation)
                assert {name: operation[name] for name in wanted or ()} == wanted

    run(sequencer, bench)
    assert joined > 20


@pytest.mark.parametrize("write_fails", [False, True])
def test_a_fault_while_two_instructions_are_joined_belongs_to_one_of_them(write_fails: bool) -> None:
    """A write is of the first instruction; a read is of the second one, which faults once the first has ended."""
    sequencer = made(Sequencer, NANO)

    async def bench(ctx: Any) -> None:
        unit = sequencer.unit
        ctx.set(unit.instruction, int.from_bytes(encode(make(Kind.VDEPTHWISE)), "little"))
        ctx.set(unit.valid, 1)
        for index in (1, 2):
            ctx.set(unit.index, index)
            await ctx.tick().until(unit.ready)
            ctx.set(sequencer.drains, 1)
        ctx.set(unit.valid, 0)
        while not ctx.get(sequencer.joined):
            await ctx.tick()
        fails = sequencer.write_fault if write_fails else sequencer.read_fault
        ctx.set(fails, 1)
        await ctx.tick()
        ctx.set(fails, 0)
        for _ in range(9):
            assert ctx.get(unit.fault) == write_fails
            assert not write_fails or ctx.get(unit.fault_index) == 1
            await ctx.tick()
        ctx.set(sequencer.finished, 1)
        assert ctx.get(unit.done) != write_fails
        await ctx.tick().repeat(2)
        assert ctx.get(unit.fault)
        assert ctx.get(unit.fault_index) == (1 if write_fails else 2)

    run(sequencer, bench)


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
    # Any fields, with and without those of the legal one that depend on each other.
    kept = {name: legal[name] for name in ("m1", "m2", "blocks", "last_bytes") if name in legal.values}
    any_ones = [make(kind, **any_fields(rng, kind, params)) for _ in range(12)]
    variants = [legal, *any_ones, *(instruction.with_fields(**kept) for instruction in any_ones)]
    cases = [(encode(instruction), Sequencer.model(instruction, params)) for instruction in variants]
    # Opcodes next to this one that no vector instruction has.
    known = {BY_KIND[k].opcode for k in VECTOR_KINDS}
    flipped = {BY_KIND[kind].opcode ^ 1 << bit for bit in range(BY_KIND[kind].field("opcode").width)}
    cases += [(bytes([opcode, *encode(legal)[1:]]), None) for opcode in sorted(flipped - known)]
    sequencer = made(Sequencer, params)
    for encoded, wanted in cases:

        async def bench(ctx: Any, encoded: bytes = encoded, wanted: Any = wanted) -> None:
            unit, index = sequencer.unit, rng.getrandbits(COUNT_BITS)
            ctx.set(unit.valid, 1)
            ctx.set(unit.index, index)
            ctx.set(unit.instruction, int.from_bytes(encoded, "little"))
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
