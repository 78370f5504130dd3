"""Accumulator memory: array and readout read the last value written, in both memory organizations."""

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from intloom.hw.mac.array.accumulator_memory import AccumulatorMemory
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.streams import made, run

_NANO = preset("nano")
SHAPES = {
    "both ports": _NANO.replace(strip=32),
    "fast readout": _NANO.replace(cols=8, lanes=2, strip=16, rows=8, axi_data_bits=64, acc_bits=20),
    "bits in look-up tables": _NANO.replace(cols=16, acc_bits=23, strip=32, multiplier_bits=25, weight_kib=64),
    "turns": _NANO.replace(cols=8, lanes=1, strip=16),
}
CYCLES = 600


def test_only_a_short_strip_with_slow_readout_is_single_ported() -> None:
    assert [params.single_ported_accumulators for params in SHAPES.values()] == [False, False, False, True]


def test_bits_beyond_whole_blocks_of_ram_are_in_look_up_tables() -> None:
    assert [params.accumulator_surplus for params in SHAPES.values()] == [0, 0, 16 * 23 % 72, 0]


@pytest.mark.parametrize("name", SHAPES)
def test_reads_give_what_was_written(name: str, rng: random.Random) -> None:
    params = SHAPES[name]
    memory = made(AccumulatorMemory, params)
    words = 2 * params.strip
    writes: list[tuple[int, Sequence[int]]] = []
    limit = 1 << (params.acc_bits - 1)
    seen = {"read": 0, "readout": 0}

    async def bench(ctx: Any) -> None:
        due: deque[dict[str, Sequence[int]]] = deque([{}] * AccumulatorMemory.LATENCY)
        for _ in range(CYCLES):
            for port, value in due.popleft().items():
                sums = getattr(memory, f"{port}_data")
                assert [ctx.get(sums[column]) for column in range(params.cols)] == value, port
                seen[port] += 1
            written = rng.randrange(words)
            read, readout = (
                rng.choice([n for n in range(words) if n != written]),
                _readout_address(params, rng, written),
            )
            if (
                params.single_ported_accumulators
                and readout is not None
                and readout // params.strip == read // params.strip
            ):
                read = rng.choice([n for n in range(words) if n // params.strip != readout // params.strip])
            asked = {} if read == written else {"read": read}
            ctx.set(memory.read_address, read)
            ctx.set(memory.readout_en, readout is not None)
            if readout is not None:
                ctx.set(memory.readout_address, readout)
                asked["readout"] = readout
            asked = {port: address for port, address in asked.items() if address in dict(writes)}
            due.append({port: AccumulatorMemory.model(writes, address, params.cols) for port, address in asked.items()})
            await _write(ctx, written)

    async def _write(ctx: Any, address: int) -> None:
        stores = rng.random() < 0.7
        values = [rng.choice((-limit, limit - 1, rng.randrange(-limit, limit))) for _ in range(params.cols)]
        ctx.set(memory.write_en, stores)
        ctx.set(memory.write_address, address)
        for column, value in enumerate(values):
            ctx.set(memory.write_data[column], value)
        await ctx.tick()
        if stores:
            writes.append((address, values))

    run(memory, bench)
    assert min(seen.values()) > CYCLES // 4


def _readout_address(params: HardwareParams, rng: random.Random, written: int) -> int | None:
    """A readout address, or none in this cycle."""
    address = rng.randrange(2 * params.strip)
    return None if address == written or rng.random() < 0.3 else address
