"""What load and store share: each move's bursts and addresses, independently of each other, and none after a halt."""

import random
from typing import Any

import pytest
from amaranth import Cat

from intloom.hw.dma.address_walker import local_address_layout
from intloom.hw.dma.front_end import MoveFrontEnd
from intloom.hw.dma.runs import offset_bits
from intloom.hw.spec import isa
from intloom.hw.spec.isa import Instruction, Kind
from intloom.hw.spec.params import preset
from tests.hw.dma.moves import set_window
from tests.hw.dma.test_load import BASE, BASES, WIDE, index_of, local_words, random_move
from tests.hw.streams import Process, made, run, sink

PARAMS = preset("nano").replace(axi_outstanding=4)
PAGE = 4096 // PARAMS.word_bytes
ADDRESSES = ("dram", "dram_s1", "dram_s2", "local", "local_s1", "local_s2")
Burst = tuple[int, int, int]


def _offer(
    front: MoveFrontEnd, moves: list[Instruction], rng: random.Random, taken: list[int], limit: int | None = None
) -> Process:
    async def offer(ctx: Any) -> None:
        set_window(ctx, front.window, BASE, limit)
        for index, move in enumerate(moves):
            while rng.random() < 0.3:
                await ctx.tick()
            ctx.set(front.valid, 1)
            ctx.set(front.instruction, int.from_bytes(isa.encode(move), "little"))
            ctx.set(front.index, index_of(index))
            ready = 0
            while not ready:
                *_, ready = await ctx.tick().sample(front.ready)
            taken.append(index)
            ctx.set(front.valid, 0)

    return offer


def _take_bursts(front: MoveFrontEnd, rng: random.Random, bursts: list[Burst]) -> Process:
    async def take(ctx: Any) -> None:
        port = front.bursts
        while True:
            ctx.set(port.ready, rng.random() < 0.6)
            *_, passes, burst = await ctx.tick().sample(port.valid & port.ready, port.payload)
            if passes:
                bursts.append((burst.addr, burst.beats_less_one + 1, burst.last))

    return take


def _gate(front: MoveFrontEnd, rng: random.Random, issued: list[int]) -> Process:
    """Lets bursts leave at random and counts them."""

    async def gate(ctx: Any) -> None:
        while True:
            may = rng.random() < 0.7
            ctx.set(front.issue_enable, may)
            *_, leaves, last = await ctx.tick().sample(front.issued, front.issued_last)
            if leaves:
                assert may, "a burst left although it was held back"
                issued.append(last)

    return gate


def _with_all_bits(kind: Kind, rng: random.Random) -> list[Instruction]:
    """Two moves: each bit of an address or of a step is 0 in one and 1 in the other."""
    masks = {name: (1 << isa.BY_KIND[kind].field(name).width) - 1 for name in ADDRESSES}
    first = {name: rng.randint(0, mask) for name, mask in masks.items()}
    second = {name: value ^ masks[name] for name, value in first.items()}
    return [isa.make(kind, n0=1, n1=2, n2=2, **fields) for fields in (first, second)]


@pytest.mark.parametrize("kind", [Kind.LOAD, Kind.STORE])
def test_bursts_and_addresses_of_every_move(kind: Kind, rng: random.Random) -> None:
    front = made(MoveFrontEnd, WIDE, kind)
    moves = [random_move(rng, kind.name, WIDE) for _ in range(4)] + _with_all_bits(kind, rng)
    words = [word for move in moves for word in MoveFrontEnd.model(move)]
    bursts: list[Burst] = []
    addresses: list[int] = []
    issued: list[int] = []

    async def all_bursts(ctx: Any) -> None:
        """All addresses may transfer before the last burst does."""
        while sum(beats for _, beats, _ in bursts) < len(words):
            await ctx.tick()

    run(
        front, _offer(front, moves, rng, []), sink(front.addresses, addresses, len(words), rng, 0.6), all_bursts,
        background=[_take_bursts(front, rng, bursts), _gate(front, rng, issued)],
    )  # fmt: skip
    assert [at + k for at, beats, _ in bursts for k in range(beats)] == [
        BASE + dram % (1 << offset_bits(WIDE)) for dram, _ in words
    ]
    assert all(at // PAGE == (at + beats - 1) // PAGE and beats <= PARAMS.axi_burst for at, beats, _ in bursts)
    assert sum(last for *_, last in bursts) == len(moves)
    assert issued == [last for *_, last in bursts]
    expected = [
        {
            "target": move.values.get("target", 0),
            "addr": local,
            "index": index_of(index),
            "last": int(k == len(words_of) - 1),
        }
        for index, move in enumerate(moves)
        for words_of in [local_words(move)]
        for k, (_, local) in enumerate(words_of)
    ]
    found = [local_address_layout(WIDE).from_bits(bits) for bits in addresses]
    assert [{name: address[name] for name in local_address_layout(WIDE).members} for address in found] == expected


@pytest.mark.parametrize("kind", [Kind.LOAD, Kind.STORE])
def test_after_a_halt_only_what_has_left_comes_out(kind: Kind, rng: random.Random) -> None:
    """At the end of a short move the front end would take another; within a long one it would not."""
    front = made(MoveFrontEnd, PARAMS, kind)
    for _ in range(4):
        _check_halt(front, [isa.make(kind, dram=rng.getrandbits(20), n0=1) for _ in range(12)], rng)
        _check_halt(front, [random_move(rng, kind.name, PARAMS) for _ in range(12)], rng)


def _check_halt(front: MoveFrontEnd, moves: list[Instruction], rng: random.Random) -> None:
    bursts: list[Burst] = []
    issued: list[int] = []
    taken: list[int] = []

    async def halt(ctx: Any) -> None:
        ctx.set(front.addresses.ready, 1)
        for _ in range(rng.randrange(20, 120)):
            await ctx.tick()
        ctx.set(front.halt, 1)
        await ctx.tick()
        before = len(taken), len(issued)
        for _ in range(200):
            assert not ctx.get(front.ready)
            await ctx.tick()
        assert (len(taken), len(issued)) == before, "something began after the halt"
        assert len(bursts) == len(issued), "a burst that had left must come out"
        assert not ctx.get(front.bursts.valid)

    offer, take = _offer(front, moves, rng, taken), _take_bursts(front, rng, bursts)
    run(front, halt, background=[offer, take, _gate(front, rng, issued)])
    assert bursts


@pytest.mark.parametrize("kind", [Kind.LOAD, Kind.STORE])
@pytest.mark.parametrize("dram", [0, 64])
def test_nothing_of_a_move_comes_out_that_is_first_offered_during_a_halt(dram: int, kind: Kind) -> None:
    """Neither an address nor the fault of a burst outside the window."""
    front = made(MoveFrontEnd, PARAMS, kind)

    async def bench(ctx: Any) -> None:
        set_window(ctx, front.window, BASE, 64)
        ctx.set(front.instruction, int.from_bytes(isa.encode(isa.make(kind, n0=1, dram=dram)), "little"))
        ctx.set(Cat(front.halt, front.valid, front.issue_enable), 0b111)
        for _ in range(40):
            outputs = (front.ready, front.issued, front.outside, front.bursts.valid, front.addresses.valid)
            assert not any(ctx.get(output) for output in outputs)
            await ctx.tick()

    run(front, bench)


@pytest.mark.parametrize("kind", [Kind.LOAD, Kind.STORE])
@pytest.mark.parametrize("before", range(4))
def test_a_burst_outside_the_window_names_its_instruction(before: int, kind: Kind, rng: random.Random) -> None:
    """Bursts before it leave; it does not, and neither does one of the instruction after it."""
    front = made(MoveFrontEnd, PARAMS, kind)
    limit = 64
    moves = [isa.make(kind, dram=rng.randrange(limit - 16), n0=rng.randint(1, 16)) for _ in range(before + 2)]
    moves[before] = isa.make(kind, dram=limit - 1, n0=2)
    bursts: list[Burst] = []

    async def bench(ctx: Any) -> None:
        ctx.set(front.addresses.ready, 1)
        await ctx.tick().until(front.outside)
        for _ in range(50):
            assert (ctx.get(front.outside), ctx.get(front.outside_index)) == (1, index_of(before))
            await ctx.tick()

    offer, take = _offer(front, moves, rng, [], limit), _take_bursts(front, rng, bursts)
    run(front, bench, background=[offer, take, _gate(front, rng, [])])
    assert [at + k for at, beats, _ in bursts for k in range(beats)] == [
        BASE + dram for move in moves[:before] for dram, _ in MoveFrontEnd.model(move)
    ]


@pytest.mark.parametrize("base", BASES)
def test_every_bit_of_both_ends_of_the_window_counts(base: int) -> None:
    """In a window of one word a burst of one leaves, and one of two does not."""
    front = made(MoveFrontEnd, WIDE, Kind.LOAD)
    for words in (1, 2):

        async def bench(ctx: Any, words: int = words) -> None:
            set_window(ctx, front.window, base, 1)
            ctx.set(front.instruction, int.from_bytes(isa.encode(isa.make(Kind.LOAD, n0=words)), "little"))
            ctx.set(Cat(front.valid, front.issue_enable), 0b11)
            await ctx.tick().until(front.bursts.valid | front.outside)
            assert (ctx.get(front.bursts.valid), ctx.get(front.outside)) == (words == 1, words == 2)

        run(front, bench)


@pytest.mark.parametrize("kind", [Kind.LOAD, Kind.STORE])
def test_every_bit_of_a_move_s_sizes_counts(kind: Kind) -> None:
    """With two bits, of which one is lost, the first word of a move would be its last."""
    front = made(MoveFrontEnd, PARAMS, kind)
    for name in ("n0", "n1", "n2"):
        # So that the first burst is never the last.
        for bit in range(PARAMS.axi_burst.bit_length() - 1, isa.BY_KIND[kind].field(name).width):
            move = isa.make(kind, **{"n0": 1, "n1": 1, "n2": 1, name: 1 << bit | 1})

            async def bench(ctx: Any, move: Instruction = move) -> None:
                set_window(ctx, front.window, BASE)
                ctx.set(front.instruction, int.from_bytes(isa.encode(move), "little"))
                ctx.set(Cat(front.valid, front.issue_enable), 0b11)
                for port in (front.bursts, front.addresses):
                    await ctx.tick().until(port.valid)
                    assert not ctx.get(port.payload.last)

            run(front, bench)


@pytest.mark.parametrize("kind", [Kind.LOAD, Kind.STORE])
def test_an_open_burst_does_not_wait_for_its_own_data(kind: Kind) -> None:
    """Contiguous in memory only, and more runs than may be in flight: each waits for the data of an open burst."""
    params = PARAMS.replace(axi_burst=64)
    front = made(MoveFrontEnd, params, kind)
    runs = 3 * params.runs_in_flight
    move = isa.make(kind, n0=1, n1=runs, dram_s1=1, local_s1=3)
    addresses: list[int] = []

    async def bench(ctx: Any) -> None:
        set_window(ctx, front.window, BASE)
        ctx.set(front.issue_enable, 1)
        ctx.set(front.bursts.ready, 1)
        ctx.set(front.instruction, int.from_bytes(isa.encode(move), "little"))
        ctx.set(front.valid, 1)
        beats = 0
        for _ in range(40 * runs):
            ctx.set(front.addresses.ready, beats > len(addresses))
            *_, taken, fires, burst, passes, address = await ctx.tick().sample(
                front.ready,
                front.bursts.valid,
                front.bursts.payload,
                front.addresses.valid & front.addresses.ready,
                front.addresses.payload,
            )
            if taken:
                ctx.set(front.valid, 0)
            beats += (burst.beats_less_one + 1) * fires
            addresses.extend([address.addr] * passes)

    run(front, bench)
    assert addresses == [local for _, local in MoveFrontEnd.model(move)]
