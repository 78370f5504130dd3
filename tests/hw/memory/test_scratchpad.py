"""The scratchpad against a list of words, under random traffic on all ports."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from intloom.hw.memory.bank import Bank
from intloom.hw.memory.scratchpad import READERS, WRITERS, Scratchpad, shared_paths
from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.streams import run

SHAPES = {
    "nano": preset("nano").replace(scratch_kib=4),
    "two_banks_wide": preset("small").replace(scratch_kib=4, scratch_banks=2),
    "sixteen_banks": preset("nano").replace(scratch_kib=4, scratch_banks=16),
    "wide_vector": preset("nano").replace(scratch_kib=4, scratch_banks=4, vector_lanes=4),
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
        self.near = [rng.randrange(params.scratch_words) for _ in range(6)]
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
        """Let idle ports begin new requests; how busy each is changes now and then, so that all get their turn."""
        if cycle % PHASE_CYCLES == 0:
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


def _run(params: HardwareParams, rng: random.Random) -> dict[str, int]:
    """Compare grants, faults and data in every cycle; returns the words read by each port."""
    dut = Scratchpad(params)
    words = [bytes(params.word_bytes)] * params.scratch_words
    traffic = Traffic(rng, params)
    seen = dict.fromkeys(READERS, 0)

    async def bench(ctx):
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
            for name, request in requests.items():
                port = getattr(dut, name)
                outside = request.addr >= params.scratch_words
                assert ctx.get(port.ready) == (name in granted), (cycle, name)
                assert ctx.get(port.fault) == outside, (cycle, name)
                if ctx.get(port.ready):
                    taken.append(name)
                    if name in READERS and not outside:
                        word = int.from_bytes(words[request.addr], "little")
                        due.append((cycle + READ_LATENCY, name, request.addr, word))
            for name in taken:
                request = requests[name]
                if name in WRITERS and request.addr < params.scratch_words:
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
