"""The scratchpad against a list of words, under random traffic on all ports."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from amaranth.hdl import Cat

from intloom.hw.memory import bank as bank_module
from intloom.hw.memory.bank import Bank
from intloom.hw.memory.parity import BYTE_GRANULE
from intloom.hw.memory.scratchpad import READER_UNITS, READERS, WRITERS, Scratchpad, shared_paths
from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.idle import check_idle
from tests.hw.memory.stored import flip, stored_words
from tests.hw.streams import made, run, set_together

SHAPES = {
    "nano": preset("nano").replace(scratch_kib=4),
    "two_banks_wide": preset("small").replace(scratch_kib=4, scratch_banks=2),
    "sixteen_banks": preset("nano").replace(scratch_kib=4, scratch_banks=16),
    "wide_vector": preset("nano").replace(scratch_kib=4, scratch_banks=4, vector_lanes=4),
    "parity": preset("nano").replace(scratch_kib=4, memory_parity=True),
    "parity_separate_paths": preset("nano").replace(scratch_kib=4, scratch_banks=4, vector_lanes=4, memory_parity=True),
}
CYCLES = 1500
PHASE_CYCLES = 50


@dataclass
class Request:
    """What a port asks for until it is granted."""

    addr: int
    data: int = 0
    mask: int = 0


class Traffic:
    """Random requests that hold until granted, on a handful of words so that ports meet."""

    def __init__(self, rng: random.Random, params: HardwareParams) -> None:
        self.rng = rng
        self.params = params
        self.near: list[int] = []
        self.activity: dict[str, float] = {}
        self.pending: dict[str, Request] = {}

    def _address(self, name: str) -> int:
        if name == "act1" and "act0" in self.pending:
            return (self.pending["act0"].addr + 1) % self.params.scratch_words
        if name == "act0" and "act1" in self.pending:
            return (self.pending["act1"].addr - 1) % self.params.scratch_words
        if self.rng.random() < 0.02:
            return self.rng.randrange(self.params.scratch_words, 1 << 20)
        return self.rng.choice(self.near) if self.rng.random() < 0.8 else self.rng.randrange(self.params.scratch_words)

    def step(self, cycle: int) -> None:
        """Let idle ports begin new requests. How busy each is changes now and then, so that all get their turn.

        The words on which they meet change too, so that every bank has some.
        """
        if cycle % PHASE_CYCLES == 0:
            self.near = [self.rng.randrange(self.params.scratch_words) for _ in range(6)]
            self.activity = {name: self.rng.choice((0.0, 0.3, 1.0)) for name in (*READERS, *WRITERS)}
        for name in (*READERS, *WRITERS):
            if name not in self.pending and self.rng.random() < self.activity[name]:
                word = 8 * self.params.word_bytes
                full = (1 << self.params.word_bytes) - 1
                mask = self.rng.choice((full, self.rng.getrandbits(self.params.word_bytes)))
                self.pending[name] = Request(self._address(name), self.rng.getrandbits(word), mask)


def _drive(ctx, dut: Scratchpad, pending: dict[str, Request]) -> None:
    for name in (*READERS, *WRITERS):
        port = getattr(dut, name)
        request = pending.get(name)
        ctx.set(port.valid, request is not None)
        if request is not None:
            ctx.set(port.addr, request.addr)
            if name in WRITERS:
                ctx.set(port.data, request.data)
                ctx.set(port.mask, request.mask)


async def _write_all(ctx: Any, dut: Scratchpad, words: Sequence[bytes]) -> None:
    """Write all words: those that nothing has written have no parity."""
    port = dut.load
    ctx.set(Cat(port.valid, port.mask), -1)
    for address, word in enumerate(words):
        set_together(ctx, Cat(port.addr, port.data), (address, int.from_bytes(word, "little")))
        await ctx.tick()
    ctx.set(port.valid, 0)


def _run(params: HardwareParams, rng: random.Random) -> dict[str, int]:
    """Compare grants, faults and data in every cycle; returns the words read by each port."""
    dut = made(Scratchpad, params)
    words = [rng.randbytes(params.word_bytes) for _ in range(params.scratch_words)]
    traffic = Traffic(rng, params)
    seen = dict.fromkeys(READERS, 0)

    async def bench(ctx):
        await _write_all(ctx, dut, words)
        due: list[tuple[int, str, int, int]] = []
        for cycle in range(CYCLES):
            traffic.step(cycle)
            requests = dict(traffic.pending)
            _drive(ctx, dut, requests)
            for _when, name, addr, word in [d for d in due if d[0] == cycle]:
                assert ctx.get(getattr(dut, name).data) == word, (cycle, name, addr)
                seen[name] += 1
            due = [d for d in due if d[0] > cycle]
            taken = []
            granted = Scratchpad.model(params, {name: request.addr for name, request in requests.items()})
            assert not (params.memory_parity and ctx.get(dut.error.valid)), cycle
            # The address of a port without a request is that of its last one.
            faults = {name for name in (*READERS, *WRITERS) if ctx.get(getattr(dut, name).fault)}
            assert faults == {name for name, r in requests.items() if r.addr >= params.scratch_words}, cycle
            for name, request in requests.items():
                port = getattr(dut, name)
                assert ctx.get(port.ready) == (name in granted), (cycle, name)
                if ctx.get(port.ready):
                    taken.append(name)
                    if name in READERS and request.addr < len(words):
                        word = int.from_bytes(words[request.addr], "little")
                        due.append((cycle + READ_LATENCY, name, request.addr, word))
            for name in taken:
                request = requests[name]
                if name in WRITERS and request.addr < len(words):
                    data = request.data.to_bytes(params.word_bytes, "little")
                    words[request.addr] = Bank.model(words[request.addr], data, request.mask)
                del traffic.pending[name]
            await ctx.tick()

    run(dut, bench)
    return seen


@pytest.mark.parametrize("shape", SHAPES)
def test_every_port_reads_what_was_written_and_waits_only_for_more_important_ones(shape: str, rng) -> None:
    seen = _run(SHAPES[shape], rng)
    assert all(count > 0 for count in seen.values()), seen


def test_both_kinds_of_paths_are_tried() -> None:
    assert {bool(shared_paths(params)) for params in SHAPES.values()} == {True, False}


PARITY_SHAPES = [name for name, params in SHAPES.items() if params.memory_parity]


@pytest.mark.parametrize("shape", PARITY_SHAPES)
def test_a_flipped_bit_is_an_error_of_each_unit_that_reads_it(
    shape: str, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    """Each bit of a word's bytes and each parity bit, in every bank, read by every port, with lower ports waiting."""
    params = SHAPES[shape]
    banks = stored_words(monkeypatch, bank_module)
    dut = Scratchpad(params)
    bits = BYTE_GRANULE * params.word_bytes
    cases = [(bit, name) for bit in range(bits) for name in READERS]

    async def read(ctx: Any, name: str, address: int) -> list[int]:
        """Cycles from the grant to each error."""
        waiting = [low for low in READERS[READERS.index(name) + 1 :] if low != "act1"]
        for port in (name, *waiting):
            ctx.set(getattr(dut, port).valid, 1)
            ctx.set(getattr(dut, port).addr, address if port == name else (address & ~15) + 16)
        assert ctx.get(getattr(dut, name).ready)
        found, offered = [], {name, *waiting}
        for cycle in range(Scratchpad.ERROR_LATENCY + 3):
            if ctx.get(dut.error.valid):
                found.append(cycle)
                assert (ctx.get(dut.error.unit), ctx.get(dut.error.address)) == (READER_UNITS[name], address)
            granted = {port for port in offered if ctx.get(getattr(dut, port).ready)}
            await ctx.tick()
            for port in granted:
                ctx.set(getattr(dut, port).valid, 0)
            offered -= granted
        assert not offered
        return found

    async def bench(ctx: Any) -> None:
        await _write_all(ctx, dut, [rng.randbytes(params.word_bytes) for _ in range(params.scratch_words)])
        for bit, name in cases:
            address = rng.randrange(params.scratch_words - 32)
            row, bank = divmod(address, params.scratch_banks)
            assert await read(ctx, name, address) == []
            flip(ctx, banks[bank], row, bit)
            assert await read(ctx, name, address) == [Scratchpad.ERROR_LATENCY], (bit, name)
            flip(ctx, banks[bank], row, bit)

    run(dut, bench)


def test_of_errors_in_one_cycle_the_lowest_bank_is_reported(
    monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    params = SHAPES["parity"]
    banks = stored_words(monkeypatch, bank_module)
    dut = Scratchpad(params)

    async def bench(ctx: Any) -> None:
        await _write_all(ctx, dut, [rng.randbytes(params.word_bytes) for _ in range(params.scratch_words)])
        for bank in banks:
            flip(ctx, bank, 5, 3)
        for port, address in ((dut.act0, 11), (dut.act1, 10)):
            ctx.set(port.valid, 1)
            ctx.set(port.addr, address)
        await ctx.tick()
        for port in (dut.act0, dut.act1):
            ctx.set(port.valid, 0)
        await ctx.tick().repeat(Scratchpad.ERROR_LATENCY - 1)
        assert (ctx.get(dut.error.valid), ctx.get(dut.error.address)) == (1, 10)
        await ctx.tick()
        assert not ctx.get(dut.error.valid)

    run(dut, bench)


@pytest.mark.parametrize("shape", SHAPES)
def test_registers_keep_their_values_without_work(shape: str, rng: random.Random) -> None:
    check_idle(Scratchpad(SHAPES[shape]), rng, *(f"{name}__valid" for name in (*READERS, *WRITERS)))
