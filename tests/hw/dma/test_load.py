"""The load unit: every word at its address under random back-pressure, and a beat a cycle in spite of latency."""

import random
from functools import partial
from typing import Any

import pytest

from intloom.compiler.program.word_code import encode_words
from intloom.hw.dma.front_end import MoveFrontEnd
from intloom.hw.dma.load import LoadUnit
from intloom.hw.dma.runs import word_address_bits
from intloom.hw.spec import isa
from intloom.hw.spec.constant_check import block_crc
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.regs import Cause
from tests.hw.dma.accounting import Accounts
from tests.hw.dma.memory_model import content, read_memory
from tests.hw.dma.moves import set_window
from tests.hw.dma.test_word_decoder import random_words
from tests.hw.streams import made, run

BASE = 0x2000_0000 | 0x12345
"""With the top bit of the narrowest word address."""
HALT_CYCLES = 4
"""Cycles from a halt to the one from which `idle` is final."""


WIDE = preset("nano").replace(axi_addr_bits=64)
BASES = [sum(1 << bit for bit in range(first, word_address_bits(WIDE), 2)) for first in (0, 1)]
"""In each, every second bit is high."""


def first_address(unit: Any, kind: str, addresses: Any, base: int) -> int:
    """The address of the first burst on the stream `addresses` of a unit that moves the one word of a window."""
    found = 0

    async def bench(ctx: Any) -> None:
        nonlocal found
        set_window(ctx, unit.window, base, 1)
        ctx.set(unit.unit.instruction, int.from_bytes(isa.encode(isa.make(kind, n0=1)), "little"))
        ctx.set(unit.unit.valid, 1)
        await ctx.tick().until(addresses.valid)
        found = ctx.get(addresses.payload).addr

    run(unit, bench)
    return found


def index_of(number: int) -> int:
    """The index that a bench gives to a move: neighbors differ in nearly all bits."""
    pattern = ((1 << isa.COUNT_BITS) - 1) // 3
    return pattern << number % 2 ^ number >> 1


def random_move(rng: random.Random, kind: str, params: HardwareParams) -> isa.Instruction:
    n0, n1, n2 = rng.choice([1, 2, 5, 30, 90]), rng.randint(1, 4), rng.randint(1, 3)
    s1 = rng.choice([n0, rng.getrandbits(20)])
    fields = {"n0": n0, "n1": n1, "n2": n2, "dram": rng.getrandbits(20), "dram_s1": s1, "dram_s2": rng.getrandbits(20)}
    if kind == "LOAD":
        fields["target"] = rng.randint(0, 1)
    memory = params.weight_words if fields.get("target") else params.scratch_words
    return isa.make(kind, **fields, **_local_fields(rng, n0, n1, n2, memory))


def _local_fields(rng: random.Random, n0: int, n1: int, n2: int, memory: int) -> dict[str, int]:
    """Runs and planes that touch, lie apart, overlap, are all at one address, or go backwards, in a memory's range."""
    while True:
        s1, s2 = (
            rng.choice(
                [contiguous, contiguous + rng.randint(1, 40), rng.randrange(contiguous), 0, -rng.randint(1, 400)]
            )
            for contiguous in (n0, n0 * n1)
        )
        ends = [s1 * row + s2 * plane for row in (0, n1 - 1) for plane in (0, n2 - 1)]
        first, last = -min(ends), memory - max(ends) - n0
        if first <= last:
            wrap = 1 << isa.SCRATCH_BITS
            return {"local": rng.randint(first, last), "local_s1": s1 % wrap, "local_s2": s2 % wrap}


def local_words(move: isa.Instruction) -> list[tuple[int, int]]:
    """`MoveFrontEnd.model` with addresses as the unit has them: a step backwards is a large one that wraps."""
    return [(dram, local % (1 << isa.SCRATCH_BITS)) for dram, local in MoveFrontEnd.model(move)]


class LoadBench:
    """A load unit between a memory model and local memories that record what is written."""

    def __init__(self, params: HardwareParams, moves: list[isa.Instruction], rng: random.Random, rate: float) -> None:
        self.unit = made(LoadUnit, params)
        self.moves, self.rng, self.rate = moves, rng, rate
        self.written: list[tuple[int, int, int]] = []
        self.done_after: list[int] = []
        self.written_without_fault = 0
        self.cycles = 0

    async def offer(self, ctx: Any) -> None:
        port = self.unit.unit
        set_window(ctx, self.unit.window, BASE)
        for number, move in enumerate(self.moves):
            ctx.set(port.instruction, int.from_bytes(isa.encode(move), "little"))
            ctx.set(port.index, index_of(number))
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready | port.fault)
        ctx.set(port.valid, 0)
        while len(self.done_after) < len(self.moves) and not ctx.get(port.fault):
            await ctx.tick()
        await ctx.tick()
        assert ctx.get(port.idle)
        assert not ctx.get(port.fault)

    async def record(self, ctx: Any) -> None:
        scratch, weights, port = self.unit.scratch, self.unit.weights, self.unit.unit
        while True:
            ctx.set(scratch.ready, int(self.rng.random() < self.rate))
            *_, to_scratch, sa, sd, mask, to_weights, wa, wd, done, fault = await ctx.tick().sample(
                scratch.valid & scratch.ready,
                scratch.addr,
                scratch.data,
                scratch.mask,
                weights.valid,
                weights.addr,
                weights.data,
                port.done,
                port.fault,
            )
            self.cycles += 1
            if done:
                self.done_after.append(len(self.written))
            if to_scratch:
                assert mask == (1 << len(scratch.mask)) - 1
                self.written.append((0, sa, sd))
            if to_weights:
                self.written.append((1, wa, wd))
            if not fault:
                self.written_without_fault = len(self.written)


class Stop:
    """Offers moves until a fault, or a halt in cycle `halt_at`, and watches what the unit does from then on."""

    def __init__(self, port: Any, issued: Any, completed: Any, halt_at: int | None = None) -> None:
        self.port, self.issued, self.completed, self.halt_at = port, issued, completed, halt_at
        self.fault: tuple[int, int] | None = None
        self.outstanding = 0

    async def count(self, ctx: Any) -> None:
        """Bursts that the bus has taken and not completed; in halt, no burst leaves that was not offered before it."""
        async for *_, issued, completed in ctx.tick().sample(self.issued, self.completed):
            self.outstanding += issued - completed

    async def offer(self, ctx: Any, moves: list[isa.Instruction], window: Any) -> None:
        port, left, cycle = self.port, [int.from_bytes(isa.encode(m), "little") for m in moves], 0
        set_window(ctx, window, BASE)
        while not ctx.get(port.fault) and cycle != self.halt_at:
            ctx.set(port.valid, bool(left))
            if left:
                ctx.set(port.instruction, left[0])
                ctx.set(port.index, index_of(len(moves) - len(left)))
            *_, taken = await ctx.tick().sample(port.valid & port.ready)
            left = left[1:] if taken else left
            cycle += 1
            assert cycle < 5000, "neither fault nor halt"
        if ctx.get(port.fault):
            self.fault = (ctx.get(port.cause), ctx.get(port.fault_index))
        ctx.set(port.halt, 1)
        await ctx.tick().repeat(HALT_CYCLES)
        cycles = 0
        while not ctx.get(port.idle):
            assert cycles < 2000, "the unit must come to rest"
            await ctx.tick()
            cycles += 1
        for _ in range(30):
            assert ctx.get(port.idle), "idle is final"
            # Without a fault, the words that have arrived may still finish their instruction.
            assert not (self.fault and ctx.get(port.done))
            assert not ctx.get(port.ready)
            await ctx.tick()
            assert not self.outstanding
        assert self.fault in (None, (ctx.get(port.cause), ctx.get(port.fault_index))), "the first fault stays"


def accounts(unit: LoadUnit) -> Accounts:
    """The checks of a load unit's reports."""
    return Accounts(unit.unit, (unit.scratch.valid & unit.scratch.ready) | unit.weights.valid)


def simulate(params: HardwareParams, moves: list[isa.Instruction], seed: int, rate: float, latency: int) -> LoadBench:
    rng = random.Random(seed)
    bench = LoadBench(params, moves, rng, rate)
    unit = bench.unit
    memory = read_memory(unit.bursts, unit.r, params, rng, latency, rate, params.axi_outstanding)
    run(unit, bench.offer, background=[bench.record, memory, accounts(unit).check])
    return bench


@pytest.mark.parametrize(("name", "scratch_kib"), [("nano", 8), ("nano", 32), ("base", 128)])
def test_every_word_is_written_to_its_address_in_order(name: str, scratch_kib: int, seed: int) -> None:
    """In memories of which either is the larger one, which has the longer addresses."""
    rng = random.Random(seed)
    params = preset(name).replace(axi_burst=rng.choice([4, 16, 64]), axi_outstanding=rng.choice([1, 2, 8]))
    params = params.replace(scratch_kib=scratch_kib)
    moves = [random_move(rng, "LOAD", params) for _ in range(10)]
    bench = simulate(params, moves, seed, rate=0.7, latency=rng.choice([1, 7, 40]))
    expected = [(m["target"], local, content(BASE + dram, params)) for m in moves for dram, local in local_words(m)]
    assert bench.written == expected
    ends = [0]
    for move in moves:
        ends.append(ends[-1] + move["n0"] * move["n1"] * move["n2"])
    assert bench.done_after == ends[1:], "done must come in the cycle after the last word"


def _crc(params: HardwareParams, first: int, words: int) -> int:
    """The CRC of words of the memory model."""
    read = (content(BASE + at, params).to_bytes(params.word_bytes, "little") for at in range(first, first + words))
    return block_crc(b"".join(read))


@pytest.mark.parametrize(("words", "least", "checked"), [(64, 0.95, False), (128, 0.95, False), (128, 0.95, True)])
def test_short_loads_hide_each_others_latency(words: int, least: float, checked: bool, seed: int) -> None:
    params = preset("base")
    count, latency = 2048 // words, 400
    spans = [(i * words - i % 3, words) for i in range(1, count + 1)]
    crcs = [_crc(params, *span) if checked else 0 for span in spans]
    moves = [isa.make("LOAD", dram=at, n0=n, crc=crc) for (at, n), crc in zip(spans, crcs, strict=True)]
    bench = simulate(params, moves, seed, rate=1.0, latency=latency)
    busy = count * words / (bench.cycles - latency)
    print(f"{words}-word loads: {busy:.3f} beats a cycle at latency {latency}")
    assert busy >= least


@pytest.mark.parametrize("checked", [False, True])
def test_as_many_instructions_are_in_flight_as_their_runs_have_space_for(checked: bool, seed: int) -> None:
    """Loads of one word, all of which issue before the first one's data comes, if CRCs do not limit them."""
    params = preset("nano").replace(axi_outstanding=16, constant_check=checked)
    crcs = [_crc(params, 40 * k, 1) if checked else 0 for k in range(1, 30)]
    moves = [isa.make("LOAD", dram=40 * k, local=k, n0=1, crc=crc) for k, crc in enumerate(crcs, 1)]
    bench = simulate(params, moves, seed, rate=1.0, latency=200)
    assert bench.written == [(0, move["local"], content(BASE + move["dram"], params)) for move in moves]
    assert bench.done_after == [*range(1, len(moves) + 1)]


@pytest.mark.parametrize("ahead", [1, 2, 3])
def test_an_instruction_may_issue_in_the_cycle_in_which_another_is_done(ahead: int, rng: random.Random) -> None:
    """With one instruction in flight, and with more: the count stays, and reaches 0 after the last one."""
    params = preset("nano")
    moves = [isa.make("LOAD", dram=40 * k, local=20 * k, n0=rng.randint(1, 9)) for k in range(40)]
    bench = LoadBench(params, moves, rng, 0.9)
    unit, port = bench.unit, bench.unit.unit
    together = 0

    async def offer(ctx: Any) -> None:
        nonlocal together
        set_window(ctx, unit.window, BASE)
        for index, move in enumerate(moves):
            ctx.set(port.instruction, int.from_bytes(isa.encode(move), "little"))
            ctx.set(port.index, index)
            # `valid` rises in the cycle of `done`.
            while index >= ahead and not ctx.get(port.done):
                await ctx.tick()
            ctx.set(port.valid, 1)
            together += ctx.get(port.ready & port.done)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)
        while len(bench.done_after) < len(moves):
            await ctx.tick()
        assert ctx.get(port.idle)

    memory = read_memory(unit.bursts, unit.r, params, rng, 3, 0.9, params.axi_outstanding)
    run(unit, offer, background=[bench.record, memory, accounts(unit).check])
    assert together >= len(moves) // 2


def _stopped(rng: random.Random, errors: dict[int, int], moves: list[isa.Instruction], halt_at: int | None) -> Stop:
    params = preset("nano").replace(axi_burst=4, axi_outstanding=rng.choice([1, 4]))
    bench = LoadBench(params, moves, rng, 0.7)
    unit = bench.unit
    beat = unit.r.valid & unit.r.ready & unit.r.payload.last
    stop = Stop(unit.unit, unit.bursts.valid & unit.bursts.ready, beat, halt_at)

    async def offer(ctx: Any) -> None:
        await stop.offer(ctx, moves, unit.window)

    memory = read_memory(unit.bursts, unit.r, params, rng, rng.choice([1, 9]), 0.7, params.axi_outstanding, errors)
    run(unit, offer, background=[bench.record, memory, stop.count, accounts(unit).check])
    words = [word for move in moves for word in MoveFrontEnd.model(move)]
    expected = [(0, local, content(BASE + dram, params)) for dram, local in words]
    bad = [n for n, (dram, _) in enumerate(words) if BASE + dram in errors]
    assert bench.written[: bad[0] if bad else None] == expected[: bad[0] if bad else len(bench.written)]
    ends = [k * len(words) // len(moves) for k in range(1, len(moves) + 1)]
    # A word may wait for its grant while the next beat has an error: `done` stays low after a fault.
    assert bench.done_after == [end for end in ends if end <= bench.written_without_fault]
    assert bench.written_without_fault <= (bad[0] if bad else len(bench.written))
    return stop


MOVES = [isa.make("LOAD", dram=64 * k + 3, local=20 * k, n0=5, n1=2, dram_s1=9, local_s1=7) for k in range(4)]


@pytest.mark.parametrize("number", [0, 2, 3], ids=["first", "middle", "last"])
def test_an_error_in_any_beat_stops_its_instruction(number: int, rng: random.Random) -> None:
    """In its first, a middle and its last beat: cause and index, and no `done` of it or of a later instruction."""
    words = [dram for dram, _ in MoveFrontEnd.model(MOVES[number])]
    for at, response in ((0, 2), (4, 3), (-1, 2 + number % 2)):
        cause = {2: Cause.READ_SLVERR, 3: Cause.READ_DECERR}[response]
        stop = _stopped(rng, {BASE + words[at]: response}, MOVES, None)
        assert stop.fault == (cause, index_of(number)), at


@pytest.mark.parametrize("number", [0, 2, 3], ids=["first", "middle", "last"])
def test_an_address_outside_the_scratchpad_stops_its_instruction(number: int, rng: random.Random) -> None:
    params = preset("nano").replace(axi_burst=4)
    moves = list(MOVES)
    moves[number] = isa.make("LOAD", dram=7, local=params.scratch_words - 2, n0=5)
    bench = LoadBench(params, moves, rng, 0.7)
    unit = bench.unit
    beat = unit.r.valid & unit.r.ready & unit.r.payload.last
    stop = Stop(unit.unit, unit.bursts.valid & unit.bursts.ready, beat)

    async def offer(ctx: Any) -> None:
        await stop.offer(ctx, moves, unit.window)

    memory = read_memory(unit.bursts, unit.r, params, rng, 1, 0.7, params.axi_outstanding)
    run(unit, offer, background=[bench.record, memory, stop.count])
    assert stop.fault == (Cause.SCRATCH_RANGE, index_of(number))
    words = [word for move in moves[: number + 1] for word in MoveFrontEnd.model(move)]
    expected = [(0, local, content(BASE + dram, params)) for dram, local in words if local < params.scratch_words]
    assert bench.written[: len(expected)] == expected
    assert len(bench.done_after) == number


def test_a_halt_at_any_time_completes_what_was_issued(rng: random.Random) -> None:
    for halt_at in (2, 5, *rng.sample(range(8, 70), 3)):
        assert _stopped(rng, {}, MOVES, halt_at).fault is None, halt_at


CODED = preset("small").replace(word_code=True, axi_burst=4, axi_addr_bits=40)


def _coded_loads(
    rng: random.Random, count: int
) -> tuple[list[isa.Instruction], dict[int, int], list[tuple[int, int, int]]]:
    """Loads of which most are coded, some in several runs, what memory holds for them, and what they write."""
    moves: list[isa.Instruction] = []
    memory: dict[int, int] = {}
    written: list[tuple[int, int, int]] = []
    rows = CODED.rows
    for number in range(count):
        words, target = rng.randint(1, 40), rng.randint(0, 1)
        data = random_words(rng, words, rows, range(6))
        code = encode_words(data, rows)
        coded = len(code) // rows if number % 4 else 0
        fields = {"dram": 512 * number + rng.randint(0, 9), "local": 100 * number, "n0": words, "target": target}
        runs = rng.randint(1, 2)
        source = code if coded else data
        crc = block_crc(source * runs) if number % 3 else 0
        moves.append(isa.make("LOAD", **fields, coded=coded, n1=runs, local_s1=words, crc=crc))
        for k in range(len(source) // rows):
            memory[BASE + fields["dram"] + k] = int.from_bytes(source[k * rows : (k + 1) * rows], "little")
        for k in range(runs * words):
            at = k % words * rows
            written.append((target, fields["local"] + k, int.from_bytes(data[at : at + rows], "little")))
    return moves, memory, written


def test_coded_runs_among_others(rng: random.Random) -> None:
    moves, contents, written = _coded_loads(rng, 12)
    bench = LoadBench(CODED, moves, rng, 0.8)
    unit = bench.unit
    memory = read_memory(unit.bursts, unit.r, CODED, rng, 7, 0.8, CODED.axi_outstanding, contents=contents)
    run(unit, bench.offer, background=[bench.record, memory, accounts(unit).check])
    assert bench.written == written


def test_each_bit_of_the_number_of_beats_counts(rng: random.Random) -> None:
    """The first words of long coded loads: without the bit, the beats end before them."""
    unit, rows, words = made(LoadUnit, CODED), CODED.rows, 12
    data = random_words(rng, words, rows, range(8, 9))
    code = encode_words(data, rows)
    contents = {BASE + k: int.from_bytes(code[k * rows : (k + 1) * rows], "little") for k in range(len(code) // rows)}

    async def bench(ctx: Any, bit: int) -> None:
        port, written = unit.unit, b""
        set_window(ctx, unit.window, BASE)
        move = isa.make("LOAD", n0=2 * words, coded=1 << bit | 1)
        ctx.set(port.instruction, int.from_bytes(isa.encode(move), "little"))
        ctx.set(port.valid, 1)
        ctx.set(unit.scratch.ready, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)
        while len(written) < len(data):
            *_, valid, word = await ctx.tick().sample(unit.scratch.valid, unit.scratch.data)
            written += word.to_bytes(rows, "little") * valid
            assert not ctx.get(port.fault)
        assert written == data

    for bit in range(4, isa.BY_KIND[isa.Kind.LOAD].field("coded").width):
        memory = read_memory(unit.bursts, unit.r, CODED, rng, 1, 1.0, CODED.axi_outstanding, contents=contents)
        run(unit, partial(bench, bit=bit), background=[memory])


@pytest.mark.parametrize("bits", [0xFF, 0], ids=["an illegal width", "a word too short"])
def test_a_broken_code_stops_its_instruction(bits: int, rng: random.Random) -> None:
    moves, contents, written = _coded_loads(rng, 6)
    # A single beat that is changed may still be a legal code.
    while moves[2]["coded"] == 1:
        moves, contents, written = _coded_loads(rng, 6)
    contents[BASE + moves[2]["dram"]] = bits
    bench = LoadBench(CODED, moves, rng, 0.8)
    unit = bench.unit
    beat = unit.r.valid & unit.r.ready & unit.r.payload.last
    stop = Stop(unit.unit, unit.bursts.valid & unit.bursts.ready, beat)

    async def offer(ctx: Any) -> None:
        await stop.offer(ctx, moves, unit.window)

    memory = read_memory(unit.bursts, unit.r, CODED, rng, 7, 0.8, CODED.axi_outstanding, contents=contents)
    run(unit, offer, background=[bench.record, memory, stop.count])
    assert stop.fault == (Cause.BAD_FIELD, index_of(2))
    before = sum(move["n0"] * move["n1"] for move in moves[:2])
    assert bench.written[:before] == written[:before]
    assert len(bench.done_after) == 2


@pytest.mark.parametrize("number", [4, 5, 8], ids=["plain", "coded", "without a load after it"])
def test_a_changed_bit_stops_a_load_with_a_crc(number: int, rng: random.Random) -> None:
    """In its first, any and its last word: the words are written, but the program ends with the load's index."""
    moves, contents, written = _coded_loads(rng, 9)
    size = moves[number]["coded"] or moves[number]["n0"]
    for word in (0, rng.randrange(size), size - 1):
        at, bit = BASE + moves[number]["dram"] + word, rng.randrange(8 * CODED.rows)
        bench = LoadBench(CODED, moves, rng, 0.8)
        unit = bench.unit
        beat = unit.r.valid & unit.r.ready & unit.r.payload.last
        stop = Stop(unit.unit, unit.bursts.valid & unit.bursts.ready, beat)

        async def offer(ctx: Any, stop: Stop = stop, unit: LoadUnit = unit) -> None:
            await stop.offer(ctx, moves, unit.window)

        changed = contents | {at: contents[at] ^ 1 << bit}
        memory = read_memory(unit.bursts, unit.r, CODED, rng, 7, 0.8, CODED.axi_outstanding, contents=changed)
        run(unit, offer, background=[bench.record, memory, stop.count, accounts(unit).check])
        causes = {Cause.CONSTANT_CHECK} | ({Cause.BAD_FIELD} if moves[number]["coded"] else set())
        assert stop.fault is not None
        assert stop.fault[0] in causes
        assert stop.fault[1] == index_of(number)
        before = sum(move["n0"] * move["n1"] for move in moves[:number])
        assert bench.written[:before] == written[:before]


def test_of_faults_in_one_cycle_that_of_the_earlier_instruction_counts(rng: random.Random) -> None:
    """A mismatch of a load comes 2 cycles after its last beat; in each beat of the load after it, there is an error."""
    params = preset("nano").replace(constant_check=True)
    # So long that the data of the second one follows at once.
    moves = [isa.make("LOAD", n0=12, crc=1), isa.make("LOAD", dram=12, n0=4)]
    for beat, (cause, number) in enumerate([(Cause.READ_DECERR, 1), *[(Cause.CONSTANT_CHECK, 0)] * 3]):
        unit = made(LoadUnit, params)
        stop = Stop(unit.unit, unit.bursts.valid & unit.bursts.ready, unit.r.valid & unit.r.ready & unit.r.payload.last)

        async def offer(ctx: Any, unit: LoadUnit = unit, stop: Stop = stop) -> None:
            ctx.set(unit.scratch.ready, 1)
            await stop.offer(ctx, moves, unit.window)

        errors = {BASE + 12 + beat: 3}
        memory = read_memory(unit.bursts, unit.r, params, rng, 40, 1.0, params.axi_outstanding, errors)
        run(unit, offer, background=[memory, stop.count])
        assert stop.fault == (cause, index_of(number)), beat


@pytest.mark.parametrize("base", BASES)
def test_every_bit_of_the_base_reaches_the_address(base: int) -> None:
    unit = made(LoadUnit, WIDE)
    assert first_address(unit, "LOAD", unit.bursts, base) == base
