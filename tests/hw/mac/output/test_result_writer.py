"""Result writer: every result is written to its address, and `done` follows an instruction's last write."""

import random
from functools import partial
from itertools import accumulate, islice
from typing import Any

import pytest
from amaranth.hdl import Cat

from intloom.hw.mac.output.result_writer import ResultWriter
from intloom.hw.spec.isa import BY_KIND, COUNT_BITS, SCRATCH_BITS, Kind
from intloom.hw.spec.params import HardwareParams
from tests.hw.mac.shapes import NANO, OUTPUT_SHAPES, RATES
from tests.hw.streams import made, run, source


def _write_descriptor(rng: random.Random, params: HardwareParams) -> dict[str, int]:
    return {
        **{name: rng.randint(1, 6) for name in ("out_h", "out_w")},
        "out_blocks": rng.randint(1, 3),
        "out_base": rng.getrandbits(SCRATCH_BITS),
        "out_plane": rng.getrandbits(SCRATCH_BITS),
        "out_row": rng.getrandbits(16),
        "out_x": rng.randint(1, 15),
        "out_lane": rng.randrange(0, params.rows, params.lanes),
        "index": rng.getrandbits(COUNT_BITS),
    }


class Memory:
    """The memory behind the writer: refuses and reports faults at random, and records the cycle of each event."""

    def __init__(self, writer: ResultWriter, outside: set[int], rng: random.Random, rate: float) -> None:
        self.writer, self.outside, self.rng, self.rate = writer, outside, rng, rate
        self.writes: list[tuple[int, bytes, int]] = []
        self.faults: list[int] = []
        self.resulted: list[int] = []
        self.offered: list[int] = []
        self.taken: list[int] = []
        self.done: list[int] = []

    async def follow(self, ctx: Any, descriptors: int) -> None:
        """Run until `descriptors` instructions are done."""
        cycle, waiting = 0, False
        while len(self.done) < descriptors:
            running = self.rng.random() < (1 + self.rate) / 2
            ctx.set(self.writer.run, running)
            waiting = self._look(ctx, cycle, waiting)
            if ctx.get(self.writer.results.ready) and ctx.get(self.writer.results.valid):
                assert running
                self.resulted.append(cycle)
            if ctx.get(self.writer.done):
                self.done.append(cycle)
            await ctx.tick()
            cycle += 1

    def _look(self, ctx: Any, cycle: int, waiting: bool) -> bool:
        """Grant the write on offer, or refuse it."""
        port = self.writer.port
        valid = ctx.get(port.valid)
        # Of every other instruction, only a write on offer is granted.
        ready = self.rng.random() < self.rate and (valid or len(self.done) % 2)
        ctx.set(port.ready, ready)
        # Without a write on offer it says nothing.
        ctx.set(port.fault, ctx.get(port.addr) in self.outside if valid else self.rng.getrandbits(1))
        assert ctx.get(self.writer.pending) == valid
        if ctx.get(self.writer.fault):
            self.faults.append(ctx.get(self.writer.fault_index))
        if valid and not waiting:
            self.offered.append(cycle)
        if valid and ready:
            data = ctx.get(port.data).to_bytes(len(port.data) // 8, "little")
            self.writes.append((ctx.get(port.addr), data, ctx.get(port.mask)))
            self.taken.append(cycle)
        return bool(valid and not ready)


@pytest.mark.parametrize("name", OUTPUT_SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_bytes_are_written_where_they_belong(name: str, rate: float, rng: random.Random) -> None:
    params = OUTPUT_SHAPES[name]
    writer = made(ResultWriter, params)
    # Each pixel of 64 columns has as many results as 16 pixels of `nano`.
    descriptors = [_write_descriptor(rng, params) for _ in range(6 if params.cols < 64 else 2)]
    counts = [
        descriptor["out_h"] * descriptor["out_w"] * descriptor["out_blocks"] * params.cols // params.lanes
        for descriptor in descriptors
    ]
    results = [[rng.randbytes(params.lanes) for _ in range(count)] for count in counts]
    expected = [
        (write, descriptor["index"])
        for descriptor, group in zip(descriptors, results, strict=True)
        for write in ResultWriter.model(descriptor, group, params)
    ]
    ends = [count - 1 for count in accumulate(counts)]
    # An instruction's last write may still wait when the next one begins.
    outside = {write[0] for write, _ in (*rng.sample(expected, 3), *(expected[end] for end in ends))}
    memory = Memory(writer, outside, rng, rate)

    async def follow(ctx: Any) -> None:
        await memory.follow(ctx, len(descriptors))

    payloads = [list(result) for group in results for result in group]
    run(writer, source(writer.descriptors, descriptors, rng, rate), source(writer.results, payloads, rng, rate), follow)
    assert memory.writes == [write for write, _ in expected]
    assert memory.faults == [index for write, index in expected if write[0] in memory.outside]
    assert memory.offered == [cycle + ResultWriter.LATENCY for cycle in memory.resulted]
    assert memory.done == [memory.taken[end] + ResultWriter.LATENCY for end in ends]
    if rate == 1.0:
        firsts = [0, *(end + 1 for end in ends[:-1])]
        assert all(
            memory.taken[end] - memory.taken[first] == end - first for first, end in zip(firsts, ends, strict=True)
        )


def test_every_size_has_its_whole_width(rng: random.Random) -> None:
    """The first writes of outputs with one large size, 2^n + 1: without bit n they end after one step."""
    writer = made(ResultWriter, NANO)
    steps, groups = 3, NANO.cols // NANO.lanes

    async def bench(ctx: Any, descriptor: dict[str, int], expected: list[tuple[int, bytes, int]]) -> None:
        ctx.set(Cat(writer.run, writer.results.valid, writer.port.ready, writer.descriptors.valid), 0b1111)
        ctx.set(writer.descriptors.payload, descriptor)
        found: list[tuple[int, int]] = []
        for _ in range(len(expected) + 10):
            *_, started, valid, addr, mask = await ctx.tick().sample(
                writer.descriptors.ready, writer.port.valid, writer.port.addr, writer.port.mask
            )
            if started:
                ctx.set(writer.descriptors.valid, 0)
            found += [(addr, mask)] * valid
        assert found[: len(expected)] == [(addr, mask) for addr, _, mask in expected]

    for name in ("out_h", "out_w", "out_blocks"):
        for bit in range(2, BY_KIND[Kind.CONV].field(name).width):
            sizes = {"out_h": 1, "out_w": 1, "out_blocks": 1, name: 1 << bit | 1}
            descriptor = _write_descriptor(rng, NANO) | sizes
            results = [bytes(NANO.lanes)] * (steps * groups + 1)
            expected = list(islice(ResultWriter.model(descriptor, results, NANO), steps * groups))
            run(writer, partial(bench, descriptor=descriptor, expected=expected))
