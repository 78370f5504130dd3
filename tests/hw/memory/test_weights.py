"""The weight memory against its model."""

import random
from typing import Any

import pytest

from intloom.hw.memory import weights as weights_module
from intloom.hw.memory.parity import ParityChecker
from intloom.hw.memory.weights import WeightMemory
from intloom.hw.ports import WEIGHT_LATENCY
from intloom.hw.spec.isa import SCRATCH_BITS, Unit
from intloom.hw.spec.params import preset
from tests.hw.idle import check_idle
from tests.hw.memory.stored import flip, stored_words
from tests.hw.streams import made, run

CYCLES = 1500


@pytest.mark.parametrize(("name", "parity"), [("nano", False), ("nano", True), ("base", True)])
def test_reads_see_earlier_writes_and_addresses_wrap(name: str, parity: bool, rng: random.Random) -> None:
    params = preset(name).replace(memory_parity=parity)
    dut = made(WeightMemory, params)
    addresses = [rng.getrandbits(SCRATCH_BITS) for _ in range(8)]
    steps: list[tuple[int | None, tuple[int, int] | None]] = []
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        for _ in range(CYCLES):
            # Each address is written before it is read.
            first = addresses[len(steps) : len(steps) + 1]
            read = rng.choice(addresses) if not first and rng.random() < 0.7 else None
            at, word = rng.choice(first or addresses), rng.getrandbits(8 * params.word_bytes)
            write = (at, word) if first or rng.random() < 0.7 else None
            steps.append((read, write))
            ctx.set(dut.read.valid, read is not None)
            ctx.set(dut.read.addr, read or 0)
            ctx.set(dut.write.valid, write is not None)
            ctx.set(dut.write.addr, write[0] if write else 0)
            ctx.set(dut.write.data, write[1] if write else 0)
            found.append(ctx.get(dut.read.data))
            assert not (parity and ctx.get(dut.error.valid))
            await ctx.tick()

    run(dut, bench)
    pairs = list(zip(WeightMemory.model(params, steps), found[WEIGHT_LATENCY:], strict=False))
    assert all(word in (None, data) for word, data in pairs)
    assert sum(word is not None for word, _ in pairs) > CYCLES // 2


@pytest.mark.parametrize("name", ["nano", "base"])
def test_a_flipped_bit_of_a_word_is_an_error_until_it_is_written(
    name: str, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    """Each data bit and the parity bit."""
    params = preset(name).replace(memory_parity=True)
    created = stored_words(monkeypatch, weights_module)
    dut = WeightMemory(params)
    bits, delay = 8 * params.word_bytes, WEIGHT_LATENCY + ParityChecker.LATENCY

    async def write(ctx: Any, address: int) -> None:
        ctx.set(dut.write.valid, 1)
        ctx.set(dut.write.addr, address)
        ctx.set(dut.write.data, rng.getrandbits(bits))
        await ctx.tick()
        ctx.set(dut.write.valid, 0)
        await ctx.tick().repeat(WEIGHT_LATENCY)

    async def errors(ctx: Any, address: int) -> list[int]:
        """Cycles from a read to each error."""
        ctx.set(dut.read.valid, 1)
        ctx.set(dut.read.addr, address + rng.randrange(4) * params.weight_words)
        await ctx.tick()
        ctx.set(dut.read.valid, 0)
        ctx.set(dut.read.addr, 0)
        found = []
        for cycle in range(1, delay + 3):
            if ctx.get(dut.error.valid):
                found.append(cycle)
                assert (ctx.get(dut.error.unit), ctx.get(dut.error.address)) == (Unit.MAC, address)
            await ctx.tick()
        return found

    async def bench(ctx: Any) -> None:
        for bit in range(bits + 1):
            address = rng.randrange(1, params.weight_words)
            await write(ctx, address)
            assert await errors(ctx, address) == []
            flip(ctx, created[0], address, bit)
            assert await errors(ctx, address) == [delay], bit
            await write(ctx, address)
            assert await errors(ctx, address) == [], bit

    run(dut, bench)


def test_the_memory_is_read_on_request_only(rng: random.Random) -> None:
    check_idle(WeightMemory(preset("nano").replace(weight_kib=2)), rng, "read__valid")
