"""Constants loader: every block's constants are written element by element, into free sets only."""

import itertools
import random
from collections import deque
from typing import Any

import pytest

from intloom.hw.mac.weights.constants_loader import ConstantKind, ConstantsLoader
from intloom.hw.ports import WEIGHT_LATENCY
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import WEIGHT_ADDRESS_BITS
from intloom.hw.spec.params import HardwareParams
from tests.hw.mac.shapes import NANO, RATES, WEIGHT_SHAPES
from tests.hw.streams import made, run, source

ADDRESSES = 1 << WEIGHT_ADDRESS_BITS
SHAPES = {**WEIGHT_SHAPES, "half": NANO.replace(rows=32, cols=4, axi_data_bits=256, weight_kib=128)}
"""With residual constants that fill half a word."""


class Memory:
    """A read port's data: noise except for requested words."""

    def __init__(self, rng: random.Random, params: HardwareParams) -> None:
        self.rng, self.bits = rng, 8 * params.word_bytes
        self.words: dict[int, int] = {}
        self._due: deque[int | None] = deque([None] * (WEIGHT_LATENCY - 1))

    def word(self, address: int) -> int:
        """The word at an address, chosen at its first read."""
        return self.words.setdefault(address % ADDRESSES, self.rng.getrandbits(self.bits))

    def read(self, address: int) -> bytes:
        """The same word's bytes."""
        return self.word(address).to_bytes(self.bits // 8, "little")

    def step(self, asked: bool, address: int) -> int:
        """The data port in the next cycle."""
        self._due.append(self.word(address) if asked else None)
        word = self._due.popleft()
        return self.rng.getrandbits(self.bits) if word is None else word


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_constants_are_written_element_by_element(name: str, rate: float, rng: random.Random) -> None:
    params = SHAPES[name]
    loader, memory = made(ConstantsLoader, params), Memory(rng, params)
    requests = [
        {"address": rng.getrandbits(WEIGHT_ADDRESS_BITS), "load_table": k % 2, "load_residual": rng.randrange(2)}
        for k in range(6)
    ]
    requests[1]["address"] = ADDRESSES - 2
    found: list[tuple[ConstantKind, int, int]] = []
    blocks: list[int] = []

    async def environment(ctx: Any) -> None:
        names = {
            ConstantKind.TABLE: "table_free",
            ConstantKind.RESIDUAL: "residual_free",
            ConstantKind.CHANNEL: "channels_free",
        }
        earlier, before = (dict.fromkeys(names, False) for _ in range(2))
        while len(blocks) < len(requests):
            free = {kind: rng.random() < rate for kind in names}
            for kind, port in names.items():
                ctx.set(getattr(loader, port), free[kind])
            allowed = rng.random() < rate
            ctx.set(loader.read_allowed, allowed)
            kind = ConstantKind(ctx.get(loader.write.kind))
            if kind is not ConstantKind.NONE:
                assert earlier[kind], f"{kind.name} was written into a set in use"
                value = ctx.get(loader.write.byte if kind is ConstantKind.TABLE else loader.write.word)
                found.append((kind, ctx.get(loader.write.index), value))
            earlier, before = before, free
            if ctx.get(loader.done):
                blocks.append(len(found))
            asked = ctx.get(loader.read_valid)
            assert allowed or not asked
            data = memory.step(bool(asked), ctx.get(loader.read_address))
            await ctx.tick()
            ctx.set(loader.read_data, data)

    run(loader, source(loader.requests, requests, rng, rate), environment)
    expected = [list(ConstantsLoader.model(request, memory.read, params)) for request in requests]
    assert found == list(itertools.chain(*expected))
    assert blocks == list(itertools.accumulate(map(len, expected))), "done comes with a block's last kind"
    assert sum(kind is ConstantKind.TABLE for kind, _, _ in found) == 3 * TABLE_BYTES


def test_the_first_element_has_the_stated_latency() -> None:
    loader = made(ConstantsLoader, NANO)

    async def bench(ctx: Any) -> None:
        for port in (loader.read_allowed, loader.table_free, loader.residual_free, loader.channels_free):
            ctx.set(port, 1)
        ctx.set(loader.requests.valid, 1)
        assert ctx.get(loader.requests.ready)
        for _ in range(ConstantsLoader.LATENCY):
            assert ctx.get(loader.write.kind) == ConstantKind.NONE
            await ctx.tick()
            ctx.set(loader.requests.valid, 0)
        assert ctx.get(loader.write.kind) == ConstantKind.CHANNEL

    run(loader, bench)
