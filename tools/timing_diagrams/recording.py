"""Signal values of every clock cycle, sampled in Amaranth's simulator."""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import chain
from typing import Any

from amaranth.hdl import Elaboratable, Fragment
from amaranth.sim import Simulator

from tools.timing_diagrams.diagram import Diagram, Recording

Process = Callable[[Any], Any]
_PERIOD = 1e-8


def _signal(fragment: Fragment, name: str) -> Any:
    """The signal `module.submodule.attribute`; without such an attribute, the module's own signal of this name."""
    path = name.split(".")
    modules = {inner: sub for sub, inner, _ in fragment.subfragments}
    if path[0] in modules:
        return _signal(modules[path[0]], ".".join(path[1:]))
    for origin in fragment.origins or ():
        if hasattr(origin, path[0]):
            return reduce(getattr, path, origin)
    resets = [domain.rst for domain in fragment.domains.values() if domain.rst is not None]
    used = (s for statements in fragment.statements.values() for one in statements for s in one._rhs_signals())
    return next(signal for signal in chain(resets, used) if signal.name == name)


def record(
    design: Elaboratable,
    bench: Process,
    diagrams: Iterable[Diagram],
    background: Iterable[Process] = (),
    domains: Sequence[str] = ("sync",),
) -> Recording:
    """Simulate until `bench` returns and give the diagrams' signals before each rising edge of the clock.

    All `domains` tick together.
    """
    fragment = Fragment.get(design, None)
    signals = {name: _signal(fragment, name) for diagram in diagrams for name in diagram.signals}
    values: list[tuple[int, ...]] = []

    async def sample(ctx: Any) -> None:
        async for _, _, *now in ctx.tick().sample(*signals.values()):
            values.append(tuple(map(int, now)))

    simulator = Simulator(fragment)
    for domain in domains:
        simulator.add_clock(_PERIOD, domain=domain)
    simulator.add_testbench(bench)
    for process in (*background, sample):
        simulator.add_testbench(process, background=True)
    simulator.run()
    return dict(zip(signals, zip(*values, strict=True), strict=True))
