"""Partners for streams in Amaranth's simulator: random sources and sinks, and a monitor of the stream rules."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from amaranth.hdl import Value
from amaranth.sim import Simulator


def plain(payload: Any) -> Any:
    """A payload sampled by the simulator as a plain number."""
    return payload if isinstance(payload, int) else payload.as_bits() if hasattr(payload, "as_bits") else int(payload)


def source(port: Any, items: Iterable[Any], rng: random.Random, rate: float = 1.0) -> Callable[[Any], Any]:
    """Offers `items` in order, pausing at random; an offer once made stays until it is taken."""

    async def process(ctx: Any) -> None:
        for item in items:
            while rng.random() >= rate:
                await ctx.tick()
            ctx.set(port.payload, item)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)

    return process


def sink(port: Any, taken: list[Any], count: int, rng: random.Random, rate: float = 1.0) -> Callable[[Any], Any]:
    """Takes `count` items into `taken`, refusing at random."""

    async def process(ctx: Any) -> None:
        while len(taken) < count:
            ctx.set(port.ready, rng.random() < rate)
            *_, valid, ready, payload = await ctx.tick().sample(port.valid, port.ready, Value.cast(port.payload))
            if valid and ready:
                taken.append(payload)
        ctx.set(port.ready, 0)

    return process


def monitor(port: Any, name: str) -> Callable[[Any], Any]:
    """Fails when an offer changes or goes away before it was taken."""

    async def process(ctx: Any) -> None:
        held = None
        async for *_, reset, valid, ready, payload in ctx.tick().sample(
            port.valid, port.ready, Value.cast(port.payload)
        ):
            if reset:
                held = None
                continue
            if held is not None:
                assert valid, f"{name}: an offer was taken back"
                assert payload == held, f"{name}: payload changed from {held:#x} to {payload:#x} before it was taken"
            held = payload if valid and not ready else None

    return process


Process = Callable[[Any], Any]


def run(
    design: Any, *processes: Process, background: Iterable[Process] = (), monitors: Iterable[tuple[Any, str]] = ()
) -> None:
    """Simulates until every process has ended; those in the background run along."""
    simulator = Simulator(design)
    simulator.add_clock(1e-8)
    for process in processes:
        simulator.add_testbench(process)
    for process in background:
        simulator.add_testbench(process, background=True)
    for port, name in monitors:
        simulator.add_testbench(monitor(port, name), background=True)
    simulator.run()
