"""The arbiter: masters write and read their own words through one memory."""

import random
from typing import Any

import pytest

from intloom.hw.soc.axi_arbiter import AxiArbiter
from intloom.hw.spec.params import preset
from tests.hw.soc.axi_memory import AxiMemory
from tests.hw.streams import run, sink, source


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_every_master_gets_its_own_words(rate: float, count: int, rng: random.Random) -> None:
    arbiter = AxiArbiter(preset("nano"), count)
    memory = AxiMemory(arbiter.memory, 4, rng, rate)
    masters, numbers = arbiter.masters, range(count)
    bursts = [[(256 * n + 16 * i, rng.randrange(1, 9)) for i in range(12)] for n in numbers]
    data = [[rng.getrandbits(32) for _, beats in bursts[n] for _ in range(beats)] for n in numbers]
    done: list[list[int]] = [[] for _ in numbers]
    got: list[list[Any]] = [[] for _ in numbers]

    def request(word: int, beats: int) -> dict[str, int]:
        return {"id": 1, "addr": 4 * word, "len": beats - 1, "size": 2, "burst": 1}

    def beats_of(n: int) -> list[dict[str, int]]:
        words = iter(data[n])
        return [
            {"data": next(words), "strb": 15, "last": int(i == beats - 1)}
            for _, beats in bursts[n]
            for i in range(beats)
        ]

    def reader(n: int) -> Any:
        async def process(ctx: Any) -> None:
            while len(done[n]) < len(bursts[n]):
                await ctx.tick()
            await source(masters[n].ar, [request(*b) for b in bursts[n]], rng, rate)(ctx)

        return process

    processes: list[Any] = []
    for n, master in enumerate(masters):
        processes += [
            source(master.aw, [request(*b) for b in bursts[n]], rng, rate),
            source(master.w, beats_of(n), rng, rate),
            sink(master.b, done[n], len(bursts[n]), rng, rate),
            reader(n),
            sink(master.r, got[n], len(data[n]), rng, rate),
        ]
    run(arbiter, *processes, background=memory.processes())
    layout = masters[0].r.payload.shape()
    for n in numbers:
        read = [layout.from_bits(bits) for bits in got[n]]
        assert [r.data for r in read] == data[n]
        assert {r.id for r in read} == {0}
    assert {(channel, number) for channel, number, _ in memory.order} == {(c, n) for c in ("ar", "aw") for n in numbers}
    # All masters wait at the beginning, so the first grants take turns.
    first = [number for channel, number, _ in memory.order if channel == "aw"][: 2 * count]
    assert rate < 1 or first == [(first[0] + i) % count for i in range(2 * count)]


def _set_random(ctx: Any, port: Any, rng: random.Random) -> dict[str, int]:
    """Drive all members of a payload with random bits; returns them."""
    values = {name: rng.getrandbits(len(port.payload[name])) for name in port.payload.shape().members}
    ctx.set(port.payload, values)
    return values


def _payload(ctx: Any, port: Any) -> dict[str, int]:
    payload = ctx.get(port.payload)
    return {name: payload[name] for name in port.payload.shape().members}


_REQUESTS, _RESPONSES = ("ar", "aw", "w"), ("r", "b")


class RandomTraffic:
    """Random inputs of all ports, whose offers stay until they are taken, and what the arbiter does with them."""

    def __init__(self, count: int, rng: random.Random) -> None:
        self.arbiter, self._rng = AxiArbiter(preset("nano"), count), rng
        self._memory, self._masters = count, range(count)
        self._offers: dict[tuple[str, int], dict[str, int]] = {}
        self._last, self._kept = {"ar": 0, "aw": 0}, dict[str, int]()
        self.address_rate = 0.5
        self._owner: int | None = None
        """The master whose write beats are awaited."""

    def _port(self, channel: str, number: int) -> Any:
        return getattr(self.arbiter.memory if number == self._memory else self.arbiter.masters[number], channel)

    def _drive(self, ctx: Any, channel: str, number: int, *, offers: bool) -> None:
        port, at = self._port(channel, number), (channel, number)
        if not offers:
            ctx.set(port.ready, self._rng.getrandbits(1))
            return
        if at not in self._offers and self._rng.random() < (self.address_rate if channel in self._last else 0.5):
            self._offers[at] = {name: self._rng.getrandbits(len(port.payload[name])) for name in _names(port)}
            if number == self._memory:
                self._offers[at]["id"] %= self._memory
            ctx.set(port.payload, self._offers[at])
        ctx.set(port.valid, at in self._offers)

    def _granted(self, channel: str) -> int | None:
        """The master that a request channel passes."""
        waiting = [n for n in self._masters if (channel, n) in self._offers]
        if channel == "w":
            return self._owner if self._owner in waiting else None
        if not waiting or (channel == "aw" and self._owner is not None):
            return None
        return self._kept.get(channel, min(waiting, key=lambda n: (n - self._last[channel] - 1) % self._memory))

    def _passed(self, ctx: Any, channel: str, offer: tuple[int, int] | None) -> bool:
        """Check that the port with an offer from one number to another has it, and no other; whether it is taken."""
        source, target = offer or (None, None)
        for number in self._masters if channel in _RESPONSES else (self._memory,):
            assert ctx.get(self._port(channel, number).valid) == (number == target)
        if source is None or target is None:
            return False
        # A request gets the number of its master, and a response identifier 0.
        port, named = self._port(channel, target), {"id": source % self._memory} if channel != "w" else {}
        payload = ctx.get(port.payload)
        assert {name: payload[name] for name in _names(port)} == self._offers[channel, source] | named
        return bool(ctx.get(port.ready))

    async def cycle(self, ctx: Any) -> None:
        """Drive and check all ports for one cycle."""
        for channel in (*_REQUESTS, *_RESPONSES):
            for number in (*self._masters, self._memory):
                self._drive(ctx, channel, number, offers=(number == self._memory) == (channel in _RESPONSES))
        granted = {channel: self._granted(channel) for channel in _REQUESTS}
        for channel in _REQUESTS:
            self._request(ctx, channel, granted[channel])
        for channel in _RESPONSES:
            response = self._offers.get((channel, self._memory))
            taken = self._passed(ctx, channel, (self._memory, response["id"]) if response else None)
            if response:
                assert ctx.get(self._port(channel, self._memory).ready) == taken
            if taken:
                del self._offers[channel, self._memory]
        await ctx.tick()

    def _request(self, ctx: Any, channel: str, granted: int | None) -> None:
        taken = self._passed(ctx, channel, None if granted is None else (granted, self._memory))
        for n in self._masters:
            assert (channel, n) not in self._offers or ctx.get(self._port(channel, n).ready) == (taken and n == granted)
        if granted is None:
            return
        if not taken:
            self._kept[channel] = granted
            return
        offer = self._offers.pop((channel, granted))
        self._kept.pop(channel, None)
        if channel == "w":
            self._owner = None if offer["last"] else granted
            return
        self._last[channel] = granted
        if channel == "aw":
            self._owner = granted


def _names(port: Any) -> list[str]:
    return [*port.payload.shape().members]


@pytest.mark.parametrize("count", [2, 3])
def test_every_cycle_follows_the_model(count: int, rng: random.Random) -> None:
    """With many requests at a time, and with few: one master alone."""
    traffic = RandomTraffic(count, rng)

    async def bench(ctx: Any) -> None:
        for cycle in range(2000):
            traffic.address_rate = 0.02 if cycle & 128 else 0.5
            await traffic.cycle(ctx)

    run(traffic.arbiter, bench)
