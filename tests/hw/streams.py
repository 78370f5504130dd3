"""Stream models for Amaranth's simulator: random sources and sinks, and a simulation that watches every port."""

import os
import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, ParamSpec, TypeVar

from amaranth.hdl import Const, Fragment, Value
from amaranth.hdl._mem import MemoryInstance
from amaranth.hdl._xfrm import LHSMaskCollector
from amaranth.lib import wiring
from amaranth.sim import Simulator

from tests.hw.protocols import handshakes, monitor, of_port
from tools.mutate.bench import ALONE_VARIABLE, SEED_VARIABLE

Process = Callable[[Any], Any]
P = ParamSpec("P")
T = TypeVar("T")
MOST_CYCLES = 200_000
"""No bench needs as many; one that does waits for what never comes."""
_MOST_PROCESSES = 20
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


def _registers(fragment: Fragment, found: LHSMaskCollector) -> LHSMaskCollector:
    """The bits of a design's signals that registers drive, with those at the read ports of memories."""
    for domain, statements in fragment.statements.items():
        if domain != "comb":
            found.visit_stmt(statements)
    if isinstance(fragment, MemoryInstance):
        for port in fragment._read_ports:
            if port._domain != "comb":
                found.visit_value(port._data, ~0)
    for inner, *_ in fragment.subfragments:
        _registers(inner, found)
    return found


@lru_cache(maxsize=1)
def _start_values(test: str) -> random.Random:
    """Random values for one test, the same ones if it runs alone."""
    return random.Random(f"{os.environ[SEED_VARIABLE]} {test}")


class _Simulation:
    """A compiled design; each run begins with random values in all registers and memories and a cycle of reset.

    So only registers with a reset and memories with initial contents have known values. A design that drives its own
    reset begins in its initial state.
    """

    def __init__(self, design: Any, monitors: Iterable[tuple[Any, str]]) -> None:
        self._simulator = Simulator(Fragment.get(design, None))
        self._simulator.add_clock(1e-8)
        # Amaranth (0.5) gives no other access to the values with which registers start.
        state, fragment = self._simulator._engine.state, self._simulator._design.fragment
        self._reset = fragment.domains["sync"].rst
        self._reset_state = state.slots[state.get_signal(self._reset)]
        self._resets = not self._reset_state.is_comb
        registers = _registers(fragment, LHSMaskCollector()).masks()
        self._registers = [(state.slots[state.get_signal(signal)], signal, mask) for signal, mask in registers]
        self._memories = [state.slots[slot] for memory, slot in state.memories.items() if not any(memory._init._raw)]
        self._simulator.add_testbench(self._end_reset, background=True)
        self._processes: dict[bool, Sequence[Process]] = {}
        for background in (False, True):
            for number in range(_MOST_PROCESSES):
                self._simulator.add_testbench(self._process(background, number), background=background)
        watched = [of_port(port, name) for port, name in monitors]
        if isinstance(design, wiring.Component):
            watched += handshakes(design)
        for process in (*map(monitor, watched), _deadline):
            self._simulator.add_testbench(process, background=True)

    def _process(self, background: bool, number: int) -> Process:
        async def process(ctx: Any) -> None:
            for wanted in self._processes[background][number : number + 1]:
                if self._resets:
                    await ctx.tick()
                await wanted(ctx)

        return process

    async def _end_reset(self, ctx: Any) -> None:
        """First of all processes: the others see no reset."""
        if self._resets:
            await ctx.tick()
            ctx.set(self._reset, 0)

    def _start(self) -> None:
        """Random values in all registers and memories, and the reset."""
        if self._processes:
            self._simulator.reset()
        if self._resets:
            rng = _start_values(os.environ["PYTEST_CURRENT_TEST"])
            for register, signal, mask in self._registers:
                # Never that of the reset: half of all flags would have it.
                value = signal.init ^ ((rng.getrandbits(len(signal)) & mask) or mask)
                register.curr = register.next = Const(value, signal.shape()).value
            for memory in self._memories:
                width, lowest = memory.shape.width, min(memory.shape.signed and -1 << memory.shape.width - 1, 0)
                memory.data = [rng.getrandbits(width) + lowest for _ in memory.data]
            self._reset_state.curr = self._reset_state.next = 1

    def run(self, processes: Sequence[Process], background: Sequence[Process]) -> None:
        """Run these processes."""
        assert max(len(processes), len(background)) <= _MOST_PROCESSES
        self._start()
        self._processes = {False: processes, True: background}
        self._simulator.run()


def run(
    design: Any, *processes: Process, background: Iterable[Process] = (), monitors: Iterable[tuple[Any, str]] = ()
) -> None:
    """Simulates until every process has ended; those in the background run along.

    Both sides of all handshakes in the design's signature are watched, and of the streams inside it that `monitors`
    names. A design that runs again is not compiled again, which takes longer than most runs.
    """
    known, watched = vars(design), list(monitors)
    assert not (watched and "_simulation" in known), "the first run of a design must name all streams that are watched"
    if "_simulation" not in known:
        known["_simulation"] = _Simulation(design, watched)
    known["_simulation"].run(processes, tuple(background))


@lru_cache(maxsize=24)
def _made(component: Callable[..., Any], *arguments: Hashable, **options: Hashable) -> Any:
    return component(*arguments, **options)


def made(component: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """The component with these arguments, which tests share: it has no state but that of a simulation."""
    make = component if os.environ.get(ALONE_VARIABLE) else partial(_made, component)
    return make(*arguments, **options)


def set_together(ctx: Any, signals: Value, values: Iterable[int]) -> None:
    """Set all parts of a concatenation; each call of `ctx.set` lets the whole design settle."""
    number = at = 0
    for part, value in zip(signals.parts, values, strict=True):  # type: ignore[attr-defined]  # Amaranth has no types
        number |= (value & (1 << len(part)) - 1) << at
        at += len(part)
    ctx.set(signals, number)


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
