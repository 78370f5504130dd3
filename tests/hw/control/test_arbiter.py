"""The shared read channel: each master gets its own data in its own order, as the model says in every cycle."""

import random
from typing import Any

import pytest

from intloom.hw.control.arbiter import ReadArbiter
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.protocols import check_burst
from tests.hw.streams import made, run, source

Beat = tuple[int, int, bool]
"""Data, response and whether it is a burst's last."""
MASTERS = ("fetch", "load")
_RESPONSES = 4


def _beat(params: HardwareParams, word: int, last: bool) -> Beat:
    """What the memory answers to a word: all bits of data and response depend on the address."""
    mixed = word * 0x9E3779B97F4A7C15 >> 16
    return mixed % (1 << params.axi_data_bits), mixed >> 3 & _RESPONSES - 1, last


class Environment:
    """Two masters that ask and take at random, a memory that answers at random, and all that was seen."""

    def __init__(self, params: HardwareParams, rng: random.Random, rates: dict[str, float]) -> None:
        self.params, self.rng, self.rates = params, rng, rates
        self.arbiter = made(ReadArbiter, params)
        self.bursts = {name: [self._burst() for _ in range(30)] for name in MASTERS}
        self.got: dict[str, list[Beat]] = {name: [] for name in MASTERS}
        self.steps: list[tuple[Any, Any, bool, bool]] = []
        self.shown: list[tuple[tuple[bool, bool], Any, str | None]] = []

    def _burst(self) -> dict[str, int]:
        """Anywhere in the address space; one of 50 has any length."""
        beats = self.rng.randrange(256 if self.rng.random() < 0.02 else 6)
        word = self.rng.getrandbits(self.params.axi_addr_bits) // self.params.word_bytes
        return {"addr": word, "beats_less_one": beats, "last": self.rng.randrange(2)}

    def expected(self, name: str) -> list[Beat]:
        """Every beat of a master's bursts."""
        sizes = [(burst["addr"], burst["beats_less_one"]) for burst in self.bursts[name]]
        return [_beat(self.params, addr + k, k == beats) for addr, beats in sizes for k in range(beats + 1)]

    def masters(self) -> list[Any]:
        """Processes that ask for all bursts, and take their data."""
        asks = [source(getattr(self.arbiter, n), self.bursts[n], self.rng, self.rates[n]) for n in MASTERS]
        return asks + [self._taker(name) for name in MASTERS]

    def _taker(self, name: str) -> Any:
        port, count = getattr(self.arbiter, f"{name}_r"), len(self.expected(name))

        async def process(ctx: Any) -> None:
            while len(self.got[name]) < count:
                ctx.set(port.ready, self.rng.random() < 0.6)
                *_, moved, answer = await ctx.tick().sample(port.valid & port.ready, port.payload)
                if moved:
                    self.got[name].append((answer.data, answer.resp, bool(answer.last)))

        return process

    async def memory(self, ctx: Any) -> None:
        """Answers every burst in order, each beat when it likes."""
        ar, r = self.arbiter.ar, self.arbiter.r
        beats: list[Beat] = []
        while True:
            ctx.set(ar.ready, self.rng.random() < 0.6)
            if not ctx.get(r.valid) and beats and self.rng.random() < 0.6:
                data, response, last = beats[0]
                ctx.set(r.payload, {"id": 0, "data": data, "resp": response, "last": last})
                ctx.set(r.valid, 1)
            *_, asked, burst, taken = await ctx.tick().sample(ar.valid & ar.ready, ar.payload, r.valid & r.ready)
            if taken:
                beats.pop(0)
                ctx.set(r.valid, 0)
            if asked:
                check_burst(burst, self.params.word_bytes)
                word = burst.addr // self.params.word_bytes
                beats += [_beat(self.params, word + k, k == burst.len) for k in range(burst.len + 1)]

    async def look(self, ctx: Any) -> None:
        """Takes down what each cycle shows, and what comes from outside."""
        a = self.arbiter
        offers = [value for port in (a.fetch, a.load, a.ar) for value in (port.valid, port.payload, port.ready)]
        ends = a.r.valid & a.r.ready & a.r.payload.last
        answers = (ends, a.r.valid, a.fetch_r.valid, a.load_r.valid)
        async for _, _, *seen in ctx.tick().sample(*offers, *answers):
            fetching, fetch, fetch_taken, loading, load, load_taken, asking, ar, ready, end, comes, *whose = seen
            offered = (_plain(fetch) if fetching else None, _plain(load) if loading else None)
            self.steps.append((*offered, bool(ready), bool(end)))
            asked = (ar.addr // self.params.word_bytes, ar.len) if asking else None
            assert comes == sum(whose), "data belongs to exactly one master"
            owner = MASTERS[whose.index(1)] if comes else None
            self.shown.append(((bool(fetch_taken), bool(load_taken)), asked, owner))


def _plain(burst: Any) -> tuple[int, int]:
    return burst.addr, burst.beats_less_one


def _passes(step: tuple[Any, ...], taken: tuple[bool, bool]) -> bool:
    """Whether a master's burst is on offer and taken."""
    return any(offer and takes for offer, takes in zip(step[:2], taken, strict=True))


@pytest.mark.parametrize("outstanding", [1, 2, 8])
@pytest.mark.parametrize(("fetch_rate", "load_rate"), [(0.2, 0.7), (0.7, 0.7), (1.0, 0.7), (0.05, 0.05)])
def test_every_cycle_follows_the_model(
    outstanding: int, fetch_rate: float, load_rate: float, rng: random.Random
) -> None:
    """With few bursts, most of them are offered while the other master offers none."""
    params = preset("nano").replace(axi_outstanding=outstanding)
    bench = Environment(params, rng, {"fetch": fetch_rate, "load": load_rate})
    run(bench.arbiter, *bench.masters(), background=[bench.memory, bench.look])
    for name in MASTERS:
        assert bench.got[name] == bench.expected(name), "a master starved, or got what was not its own"
    first_taken = next(
        k for k, (step, shown) in enumerate(zip(bench.steps, bench.shown, strict=True)) if _passes(step, shown[0])
    )
    assert next(k for k, shown in enumerate(bench.shown) if shown[1]) == first_taken + ReadArbiter.LATENCY
    model = ReadArbiter.model(outstanding, bench.steps)
    for cycle, (found, wanted) in enumerate(zip(bench.shown, model, strict=True)):
        assert found[:2] == wanted[:2], cycle
        assert found[2] in (None, wanted[2]), cycle


@pytest.mark.parametrize("outstanding", [1, 8])
def test_a_load_waits_for_nothing_but_fetches_and_room(outstanding: int, rng: random.Random) -> None:
    params = preset("nano").replace(axi_outstanding=outstanding)
    bench = Environment(params, rng, {"fetch": 0.3, "load": 1.0})
    run(bench.arbiter, *bench.masters(), background=[bench.memory, bench.look])
    waits = [shown[0] for step, shown in zip(bench.steps, bench.shown, strict=True) if step[1] and not step[0]]
    assert len(waits) > len(bench.bursts["load"])
    assert all(fetch_taken == load_taken for fetch_taken, load_taken in waits)
    assert any(
        step[0] and step[1] and shown[0] == (True, False) for step, shown in zip(bench.steps, bench.shown, strict=True)
    )
