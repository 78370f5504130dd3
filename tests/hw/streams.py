"""Stream models for Amaranth's simulator: random sources and sinks, and a simulation that watches every port."""

import random
from collections.abc import Callable, Iterable
from typing import Any

from amaranth.hdl import Fragment, Value
from amaranth.lib import wiring
from amaranth.sim import Simulator

from tests.hw.protocols import handshakes, monitor, of_port

Process = Callable[[Any], Any]
MOST_CYCLES = 200_000
"""No bench needs as many; one that does waits for what never comes."""
_PATIENT = 0.1
"""Share of items before which a sink that refuses at random waits for the offer: it must come all the same."""


async def _until(ctx: Any, signal: Any) -> None:
    """Up to the clock edge at which `signal` is high; unlike the simulator's own, it may be left unfinished."""
    high = 0
    while not high:
        *_, high = await ctx.tick().sample(signal)


def source(port: Any, items: Iterable[Any], rng: random.Random, rate: float = 1.0) -> Process:
    """Offers `items` in order, pausing at random; an offer once made stays until it is taken."""

    async def process(ctx: Any) -> None:
        for item in items:
            while rng.random() >= rate:
                await ctx.tick()
            ctx.set(port.payload, item)
            ctx.set(port.valid, 1)
            await _until(ctx, port.ready)
            ctx.set(port.valid, 0)

    return process


def sink(port: Any, taken: list[Any], count: int, rng: random.Random, rate: float = 1.0) -> Process:
    """Takes `count` items into `taken`, refusing at random, and now and then until something is on offer."""

    async def process(ctx: Any) -> None:
        while len(taken) < count:
            if rate < 1 and rng.random() < _PATIENT:
                ctx.set(port.ready, 0)
                await _until(ctx, port.valid)
            ctx.set(port.ready, rng.random() < rate)
            *_, valid, ready, payload = await ctx.tick().sample(port.valid, port.ready, Value.cast(port.payload))
            if valid and ready:
                taken.append(payload)
        ctx.set(port.ready, 0)

    return process


async def _deadline(ctx: Any) -> None:
    for _ in range(MOST_CYCLES):
        await ctx.tick()
    raise AssertionError(f"the bench must end within {MOST_CYCLES} cycles: something waits for ever")


def run(
    design: Any, *processes: Process, background: Iterable[Process] = (), monitors: Iterable[tuple[Any, str]] = ()
) -> None:
    """Simulates until every process has ended; those in the background run along.

    Both sides of all handshakes in the design's signature are watched, and of the streams inside it that `monitors`
    names.
    """
    simulator = Simulator(Fragment.get(design, None))
    simulator.add_clock(1e-8)
    for process in processes:
        simulator.add_testbench(process)
    watched = [of_port(port, name) for port, name in monitors]
    if isinstance(design, wiring.Component):
        watched += handshakes(design)
    for process in (*background, *map(monitor, watched), _deadline):
        simulator.add_testbench(process, background=True)
    simulator.run()


def cycles_through(design: Any, item: Any, background: Iterable[Process] = ()) -> int:
    """Cycles from the one in which stream `i` takes `item` to the one in which stream `o` first offers something."""
    cycles = 0

    async def bench(ctx: Any) -> None:
        nonlocal cycles
        ctx.set(design.i.payload, item)
        ctx.set(design.i.valid, 1)
        await _until(ctx, design.i.ready)
        ctx.set(design.i.valid, 0)
        cycles = 1
        while not ctx.get(design.o.valid):
            await ctx.tick()
            cycles += 1

    run(design, bench, background=background)
    return cycles
