"""What is read out of the weight memory: tiles for the array and, beside them, each block's constants."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from hw.mac.constants import ConstantsLoader, Piece
from hw.mac.loops import TileLoops
from hw.mac.weights import CONSTANTS_REQUEST, WeightFetcher
from hw.ports import READ_LATENCY
from hw.spec.isa import SCRATCH_BITS
from hw.spec.params import TABLE_BYTES, HardwareParams, preset
from tests.hw.streams import run, sink, source

NANO = preset("nano")
SHAPES = {
    "nano": NANO,
    "wide": NANO.replace(rows=4, cols=8, weight_kib=64),
    "deep": NANO.replace(rows=16, cols=4, axi_data_bits=128, weight_kib=64),
    "base": preset("base"),
}
ADDRESSES = 1 << SCRATCH_BITS
RATES = [1.0, 0.5]
Write = tuple[Piece, int, int]


class Memory:
    """A read port's data: noise but for the words that were asked for."""

    def __init__(self, rng: random.Random, params: HardwareParams) -> None:
        self.rng, self.bits = rng, 8 * params.word_bytes
        self.words: dict[int, int] = {}
        self._due: deque[int | None] = deque([None] * (READ_LATENCY - 1))

    def word(self, address: int) -> int:
        """The word at an address, chosen when first asked for."""
        return self.words.setdefault(address % ADDRESSES, self.rng.getrandbits(self.bits))

    def step(self, asked: bool, address: int) -> int:
        """The data port in the next cycle."""
        self._due.append(self.word(address) if asked else None)
        word = self._due.popleft()
        return self.rng.getrandbits(self.bits) if word is None else word


def _pieces(request: dict[str, int], memory: Memory, params: HardwareParams) -> Iterator[Write]:
    """What a request's words are taken apart into."""

    def read(words: int) -> bytes:
        nonlocal at
        at += words
        parts = (memory.word(address) for address in range(at - words, at))
        return b"".join(part.to_bytes(params.word_bytes, "little") for part in parts)

    at = request["address"]
    if request["load_table"]:
        yield from ((Piece.TABLE, index, byte) for index, byte in enumerate(read(params.table_words)))
    if request["load_residual"]:
        raw = read(params.residual_words)
        yield from ((Piece.RESIDUAL, k, int.from_bytes(raw[4 * k : 4 * k + 4], "little")) for k in range(4))
    raw = read(params.channel_words)
    for k in range(2 * params.cols):
        yield Piece.CHANNEL, k, int.from_bytes(raw[4 * k : 4 * k + 4], "little")


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_constants_come_out_piece_by_piece(name: str, rate: float, rng: random.Random) -> None:
    params = SHAPES[name]
    loader, memory = ConstantsLoader(params), Memory(rng, params)
    requests = [
        {"address": rng.getrandbits(SCRATCH_BITS), "load_table": k % 2, "load_residual": rng.randrange(2)}
        for k in range(6)
    ]
    requests[1]["address"] = ADDRESSES - 2
    found: list[Write] = []
    blocks: list[int] = []

    async def world(ctx: Any) -> None:
        names = {Piece.TABLE: "table_free", Piece.RESIDUAL: "residual_free", Piece.CHANNEL: "channels_free"}
        while len(blocks) < len(requests):
            free = {piece: rng.random() < rate for piece in names}
            for piece, port in names.items():
                ctx.set(getattr(loader, port), free[piece])
            allowed = rng.random() < rate
            ctx.set(loader.read_allowed, allowed)
            piece = Piece(ctx.get(loader.write.piece))
            if piece is not Piece.NONE:
                assert free[piece], f"{piece.name} was written into a set in use"
                value = ctx.get(loader.write.byte if piece is Piece.TABLE else loader.write.word)
                found.append((piece, ctx.get(loader.write.index), value))
            if ctx.get(loader.done):
                blocks.append(len(found))
            asked = ctx.get(loader.read_valid)
            assert allowed or not asked
            data = memory.step(bool(asked), ctx.get(loader.read_address))
            await ctx.tick()
            ctx.set(loader.read_data, data)

    run(loader, source(loader.requests, requests, rng, rate), world)
    expected = [list(_pieces(request, memory, params)) for request in requests]
    assert found == list(itertools.chain(*expected))
    assert blocks == list(itertools.accumulate(map(len, expected))), "done comes with a block's last piece"
    assert sum(piece is Piece.TABLE for piece, _, _ in found) == 3 * TABLE_BYTES


def _job(rng: random.Random) -> dict[str, int]:
    return {
        "kernel_h": rng.randint(1, 3),
        "kernel_w": rng.randint(1, 3),
        "in_blocks": rng.randint(1, 3),
        "two_planes": rng.randrange(2),
        "out_blocks": rng.randint(1, 3),
        "strips": rng.randint(1, 3),
        "address": rng.getrandbits(SCRATCH_BITS),
        "first_tile": rng.getrandbits(SCRATCH_BITS),
        "load_table": rng.randrange(2),
        "load_residual": rng.randrange(2),
    }


def _tiles(job: dict[str, int]) -> int:
    return (1 + job["two_planes"]) * job["kernel_h"] * job["kernel_w"] * job["in_blocks"]


def _reads(job: dict[str, int], params: HardwareParams) -> Iterator[int]:
    """Addresses of all tiles' words: each block's tiles once for every strip."""
    size = _tiles(job) * params.cols
    for block in range(job["out_blocks"]):
        start = job["first_tile"] + block * (size + params.channel_words)
        for _ in range(job["strips"]):
            yield from ((start + word) % ADDRESSES for word in range(size))


def _requests(job: dict[str, int], params: HardwareParams) -> Iterator[int]:
    """What the constants' loader is told: the first block's constants stand apart, the others between the tiles."""
    size = _tiles(job) * params.cols
    for block in range(job["out_blocks"]):
        between = job["first_tile"] + block * (size + params.channel_words) - params.channel_words
        flags = {name: 0 if block else job[name] for name in ("load_table", "load_residual")}
        address = between if block else job["address"]
        yield CONSTANTS_REQUEST.const({"address": address % ADDRESSES, **flags}).as_value().value


class Array:
    """Takes tiles as the sequencer does, and checks when their words come against when pixels may go out."""

    def __init__(self, fetcher: WeightFetcher, params: HardwareParams, rng: random.Random, rate: float) -> None:
        self.fetcher, self.params, self.rng, self.rate = fetcher, params, rng, rate
        self.reads: list[int] = []
        self.taken: list[int] = []
        self.became_ready: list[int] = []
        self.loads: list[int] = []

    async def follow(self, ctx: Any, tiles: int) -> None:
        """Until all tiles have been taken and their last words have come."""
        fetcher, cycle, asked = self.fetcher, 0, deque([0] * READ_LATENCY)
        while len(self.taken) < tiles or any(asked):
            allowed = self.rng.random() < self.rate
            ctx.set(fetcher.read_allowed, allowed)
            valid = ctx.get(fetcher.read_valid)
            last = len(self.reads) % self.params.cols == self.params.cols - 1
            assert allowed or not valid or last
            assert ctx.get(fetcher.last_word) == bool(valid and last)
            self._load(cycle, ctx.get(fetcher.load), asked.popleft())
            asked.append(valid and 1 << len(self.reads) % self.params.cols)
            if valid:
                self.reads.append(ctx.get(fetcher.read_address))
            ready = ctx.get(fetcher.ready)
            if ready and len(self.became_ready) == len(self.taken):
                self.became_ready.append(cycle)
            takes = ready and self.rng.random() < self.rate
            ctx.set(fetcher.taken, takes)
            if takes:
                self.taken.append(cycle)
            await ctx.tick()
            cycle += 1

    def _load(self, cycle: int, load: int, expected: int) -> None:
        assert load == expected, "the word that comes now belongs to another column"
        if load:
            tile = len(self.loads) // self.params.cols
            # A word is in the shadow in the cycle after its load; the swap comes SWAP_AHEAD cycles after the taking.
            earliest = self.taken[tile - 1] + self.fetcher.SWAP_AHEAD if tile else 0
            assert cycle >= earliest, f"tile {tile} overwrites a shadow that has not been swapped"
            self.loads.append(cycle)

    def check(self) -> None:
        """Every tile was whole when the array swapped it in, had its pixels gone out at once."""
        for tile, ready in enumerate(self.became_ready):
            assert self.loads[(tile + 1) * self.params.cols - 1] < ready + self.fetcher.SWAP_AHEAD


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_tiles_are_fetched_for_every_strip(name: str, rate: float, rng: random.Random) -> None:
    params = SHAPES[name]
    jobs = [_job(rng) for _ in range(3 if params.cols < 16 else 1)]
    fetcher = WeightFetcher(params)
    array = Array(fetcher, params, rng, rate)
    requests: list[int] = []
    wanted = [request for job in jobs for request in _requests(job, params)]
    tiles = sum(_tiles(job) * job["strips"] * job["out_blocks"] for job in jobs)

    async def follow(ctx: Any) -> None:
        await array.follow(ctx, tiles)

    run(
        fetcher, source(fetcher.jobs, jobs, rng, rate), sink(fetcher.constants, requests, len(wanted), rng, rate),
        follow,
    )  # fmt: skip
    assert array.reads == [address for job in jobs for address in _reads(job, params)]
    assert requests == wanted
    array.check()


def test_loops_nest(rng: random.Random) -> None:
    loops = TileLoops()
    names = ("two_planes", "kernel_h", "kernel_w", "in_blocks")
    bounds = [
        dict(zip(names, (rng.randrange(2), *(rng.randint(1, 4) for _ in range(3))), strict=True)) for _ in "12345"
    ]

    async def bench(ctx: Any) -> None:
        for bound in bounds:
            ctx.set(loops.bounds, bound)
            sizes = [1 + bound["two_planes"], bound["kernel_h"], bound["kernel_w"], bound["in_blocks"]]
            for place in itertools.product(*map(range, sizes)):
                ctx.set(loops.step, 0)
                while rng.random() < 0.3:
                    await ctx.tick()
                ends = [place[k:] == tuple(size - 1 for size in sizes[k:]) for k in reversed(range(4))]
                found = (ctx.get(getattr(loops, n)) for n in ("block_end", "column_end", "row_end", "last"))
                assert [bool(end) for end in found] == ends
                assert ctx.get(loops.first) == (not any(place))
                ctx.set(loops.step, 1)
                await ctx.tick()

    run(loops, bench)
