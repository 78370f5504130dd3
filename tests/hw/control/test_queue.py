"""The queues with their wait board: each unit's instructions in order, whole, and no sooner than their waits allow."""

import random
from typing import Any

import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring

from intloom.hw.control.dispatch import Dispatch
from intloom.hw.control.queue import InstructionQueues, needed_bits, used_bits
from intloom.hw.control.waits import UNITS, WaitChecker
from intloom.hw.spec import isa
from intloom.hw.spec.isa import INSTRUCTIONS, QUEUED_UNITS, Instruction, Unit
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.streams import run

LENGTH = 25


class Bench(wiring.Component):
    """The queues and the board, joined as in the engine."""

    def __init__(self, params: HardwareParams) -> None:
        self.queues, self.board = InstructionQueues(params), WaitChecker()
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queues, m.submodules.board = queues, board = self.queues, self.board
        m.d.comb += [
            board.write.eq(queues.wait),
            board.write_row.eq(queues.wait_row),
            board.write_unit.eq(queues.wait_unit),
            board.write_wait.eq(queues.wait_value),
            board.ready.eq(queues.waits_loaded),
            Cat(queues.met).eq(board.met),
        ]
        return m


def _random_instruction(rng: random.Random, unit: Unit) -> Instruction:
    spec = rng.choice([s for s in INSTRUCTIONS if s.unit is unit])
    fields = {f.name: rng.randint(f.minimum, f.maximum) for f in spec.body}
    return isa.make(spec.kind, **fields)


def _with_waits(rng: random.Random, instruction: Instruction, before: list[int]) -> Instruction:
    """Waits for instructions that stand earlier in the program."""
    waits = {f"wait_{u.name.lower()}": rng.choice([0, n, max(0, n - 3)]) for u, n in zip(Unit, before, strict=False)}
    return instruction.with_fields(**waits)


def _program(rng: random.Random) -> list[Instruction]:
    done = [0] * UNITS
    program = []
    for _ in range(4 * LENGTH):
        unit = rng.choice(QUEUED_UNITS)
        program.append(_with_waits(rng, _random_instruction(rng, unit), done))
        done[unit] += 1
    return program


async def _write(ctx: Any, port: Any, unit: Unit, slots: list[tuple[int, int]]) -> None:
    """Write the words of an entry, and commit it with the last one."""
    ctx.set(port.unit, unit)
    for slot, word in slots:
        ctx.set(port.slot, slot)
        ctx.set(port.word, word)
        ctx.set(port.valid, 1)
        ctx.set(port.commit, int(slot == slots[-1][0]))
        await ctx.tick()
    ctx.set(port.valid, 0)
    ctx.set(port.commit, 0)


def test_every_bit_of_a_wait_is_read(rng: random.Random) -> None:
    """Each wait of an entry has a random number."""
    params = preset("nano")
    queues = InstructionQueues(params)
    instructions = [_random_instruction(rng, unit) for unit in rng.choices(QUEUED_UNITS, k=30)]
    names = [f"wait_{unit.name.lower()}" for unit in QUEUED_UNITS]
    written = [i.with_fields(**{name: rng.getrandbits(isa.COUNT_BITS) for name in names}) for i in instructions]
    found: list[tuple[int, ...]] = []

    async def watch(ctx: Any) -> None:
        port = queues.wait, queues.wait_row, queues.wait_unit, queues.wait_value
        async for *_, wait, row, unit, value in ctx.tick().sample(*port):
            if wait:
                found.append((row, unit, value))

    async def fill(ctx: Any) -> None:
        for unit in QUEUED_UNITS:
            ctx.set(queues.met[unit], 1)
            ctx.set(queues.o[unit].ready, 1)
        for instruction in written:
            entry = Dispatch.entry(isa.encode(instruction), 0, params.word_bytes)
            await _write(ctx, queues.write, instruction.unit, [*enumerate(entry)])
            await ctx.tick().repeat(40)

    run(queues, fill, background=[watch])
    assert found == [(i.unit, unit, i[name]) for i in written for unit, name in zip(QUEUED_UNITS, names, strict=True)]


class Environment:
    """Dispatch and units around the queues, with a program."""

    def __init__(self, params: HardwareParams, rng: random.Random, program: list[Instruction]) -> None:
        self.params, self.rng = params, rng
        self.bench = Bench(params)
        self.program = program
        self.indices = [rng.getrandbits(isa.COUNT_BITS) for _ in self.program]
        """An entry holds its index in parts, which differ from those of the other units' entries."""
        self.expected = {
            u: [(i, k) for i, k in zip(self.program, self.indices, strict=True) if i.unit is u] for u in QUEUED_UNITS
        }
        self.finished, self.taken = [0] * UNITS, [0] * UNITS
        self.waited = 0

    def _entry(self, instruction: Instruction, index: int) -> list[int]:
        return Dispatch.entry(isa.encode(instruction), index, self.params.word_bytes)

    async def fill(self, ctx: Any) -> None:
        """As dispatch does, but an entry's words in any order."""
        port = self.bench.queues.write
        for index, instruction in zip(self.indices, self.program, strict=True):
            await ctx.tick().until(port.not_full[instruction.unit])
            slots = list(enumerate(self._entry(instruction, index)))
            self.rng.shuffle(slots)
            await _write(ctx, port, instruction.unit, slots)

    async def check_status(self, ctx: Any) -> None:
        """In every cycle a unit is empty if all of its entries were taken, and waits if it is offered none."""
        queues, write = self.bench.queues, self.bench.queues.write
        valid, ready = (Cat(getattr(queues.o[u], name) for u in QUEUED_UNITS) for name in ("valid", "ready"))
        empty, waiting = (Cat(status[u] for u in QUEUED_UNITS) for status in (queues.empty, queues.waiting))
        held = [0] * len(QUEUED_UNITS)
        sampled = ctx.tick().sample(valid, ready, empty, waiting, Cat(write.commit, write.unit))
        async for *_, offered, accepted, is_empty, is_waiting, written in sampled:
            assert [not n for n in held] == [bool(is_empty >> k & 1) for k in range(len(held))]
            assert is_waiting == ~(is_empty | offered) % (1 << len(held))
            for k, unit in enumerate(QUEUED_UNITS):
                held[k] += (written == (unit << 1 | 1)) - (offered >> k & accepted >> k & 1)

    async def units(self, ctx: Any) -> None:
        """Take instructions at random, and finish them some time later."""
        queues = self.bench.queues
        while sum(self.finished) < len(self.program):
            done = 0
            for unit in QUEUED_UNITS:
                self._take(ctx, unit)
                if self.finished[unit] < self.taken[unit] and self.rng.random() < 0.1:
                    done |= 1 << unit
            ctx.set(self.bench.board.done, done)
            await ctx.tick()
            self.finished = [n + (done >> u & 1) for u, n in enumerate(self.finished)]
        await ctx.tick()
        assert ctx.get(queues.empty) == (1 << UNITS) - 1

    def _take(self, ctx: Any, unit: Unit) -> None:
        offer = self.bench.queues.o[unit]
        ready = self.rng.random() < 0.3
        ctx.set(offer.ready, ready)
        self.waited += ctx.get(self.bench.queues.waiting[unit])
        if ctx.get(offer.valid):
            instruction, index = self.expected[unit][self.taken[unit]]
            waits = [instruction[f"wait_{u.name.lower()}"] for u in QUEUED_UNITS]
            assert WaitChecker.model(self.finished, waits), "offered before its waits held"
            found = (ctx.get(offer.payload.instruction), ctx.get(offer.payload.index))
            assert found == InstructionQueues.model(unit, self._entry(instruction, index), self.params.axi_data_bits)
            assert found[1] == index
            self.taken[unit] += ready


@pytest.mark.parametrize(("name", "depth"), [("nano", 2), ("base", 4), ("large", 2)])
def test_instructions_come_whole_in_order_and_not_before_their_waits(name: str, depth: int, seed: int) -> None:
    rng = random.Random(seed)
    environment = Environment(preset(name).replace(queue_depth=depth), rng, _program(rng))
    monitors = [(environment.bench.queues.o[u], u.name) for u in QUEUED_UNITS]
    processes = (environment.fill, environment.units)
    run(environment.bench, *processes, background=[environment.check_status], monitors=monitors)
    assert environment.taken == [len(environment.expected[u]) for u in QUEUED_UNITS]
    assert environment.waited


@pytest.mark.parametrize("unit", QUEUED_UNITS)
@pytest.mark.parametrize("depth", [2, 8, 64])
def test_a_queue_takes_as_many_as_its_depth(depth: int, unit: Unit, rng: random.Random) -> None:
    """Besides the instruction on offer; then all leave in order, so that the level passes all of its values twice."""
    program = [_random_instruction(rng, unit) for _ in range(depth + 5)]
    environment = Environment(preset("base").replace(queue_depth=depth), rng, program)
    queues, committed = environment.bench.queues, 0

    async def count(ctx: Any) -> None:
        nonlocal committed
        async for *_, commit in ctx.tick().sample(queues.write.commit):
            committed += commit

    async def units(ctx: Any) -> None:
        slots = len(environment._entry(program[0], 0))
        await ctx.tick().repeat((len(program) + 1) * (slots + 1))
        assert committed == depth + 1
        assert not ctx.get(queues.write.not_full[unit])
        await environment.units(ctx)

    run(environment.bench, environment.fill, units, background=[environment.check_status, count])
    assert environment.taken[unit] == len(program)


@pytest.mark.parametrize("unit", QUEUED_UNITS)
def test_a_unit_keeps_every_bit_that_it_has_a_use_for(unit: Unit) -> None:
    specs = [spec for spec in INSTRUCTIONS if spec.unit is unit]
    kept = {bit for low, high in needed_bits(unit) for bit in range(low, high)}
    for spec in specs:
        for field in spec.body:
            at = spec.offsets[field.name]
            assert kept >= set(range(at, at + field.width)), field.name
    assert (0 in kept) == (len(specs) > 1)
    assert used_bits(unit) == max(sum(f.width for f in spec.fields) for spec in specs)
