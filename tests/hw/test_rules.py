"""Rules for all components: benches, `valid` independent of `ready`, one docstring layout."""

import ast
import inspect
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.width_converter import WidthConverter
from intloom.hw.engine import Engine
from intloom.hw.fpga.harness import Harness
from intloom.hw.npu import Npu
from intloom.hw.soc.soc import Soc
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from tests.hw.cones import netlists
from tests.hw.protocols import handshakes
from tests.hw.streams import run
from tools.components import components

TESTS = Path(__file__).parent
AS_VERILOG = {
    Npu: "tests/hw/npu builds it as Verilog",
    Engine: "it is only used in Npu",
    Soc: "tests/intloom/soc runs it with its firmware",
    Harness: "it holds the Verilog, and tests/hw/fpga looks at its netlist",
}
OWN_SIMULATION = {"test_aig.py", "test_connections.py", "test_crc.py", "test_decode.py"}
"""The accelerator with clocks of its own; combinational logic, which has no edge at which a monitor could look."""
ARGUMENTS: dict[str, Any] = {
    "params": preset("nano"),
    "shape": 8,
    "depth": 8,
    "word_bytes": 4,
    "kind": Kind.LOAD,
    "mantissa_bits": 24,
    "word_bits": 36,
    "granule_bits": 9,
    "address_bits": 8,
    "read_latency": 2,
    "wide": True,
}
"""What components are made of."""
OWN_PARAMS = {WidthConverter: preset("nano").replace(axi_data_bits=64)}
"""Of components that not every hardware has."""


@cache
def _imports(file: Path) -> set[tuple[str, str]]:
    """Modules and names that a file imports."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return {
        (node.module or "", alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    }


COMPONENTS = components()
SECTIONS = ("Parameters", "Members", "Handshake", "Timing", "Requirements", "Reset and faults")
REQUIRED = SECTIONS[2:]


def _sections(component: type[wiring.Component]) -> list[str]:
    """Section headings of a component's docstring, in order."""
    lines = (inspect.getdoc(component) or "").splitlines()
    return [line for line, rule in pairwise(lines) if rule and rule == "-" * len(line)]


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda c: f"{c.__module__}.{c.__name__}")
def test_a_docstring_has_the_sections_in_order(component: type[wiring.Component]) -> None:
    sections = _sections(component)
    assert sections == [name for name in SECTIONS if name in sections]
    assert set(REQUIRED) <= set(sections)


def test_a_component_without_sections_is_found() -> None:
    assert _sections(Courteous) == []


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda c: f"{c.__module__}.{c.__name__}")
def test_every_component_has_a_bench(component: type[wiring.Component]) -> None:
    if component in AS_VERILOG:
        return
    benches = [file for file in TESTS.rglob("*.py") if "formal" not in file.parts and file.name != Path(__file__).name]
    wanted = (component.__module__, component.__name__)
    assert any(wanted in _imports(file) for file in benches), "no file of tests/hw simulates it by itself"


def test_benches_simulate_with_monitors() -> None:
    own = {
        file.name
        for file in TESTS.rglob("*.py")
        if any(module.startswith("amaranth.sim") for module, _ in _imports(file))
    }
    assert own == {"streams.py"} | OWN_SIMULATION


def _make(component: type[wiring.Component]) -> wiring.Component:
    needed = [p.name for p in inspect.signature(component).parameters.values() if p.default is inspect.Parameter.empty]
    arguments = ARGUMENTS | ({"params": OWN_PARAMS[component]} if component in OWN_PARAMS else {})
    return component(**{name: arguments[name] for name in needed})


class Courteous(wiring.Component):
    """Breaks the rule: it offers only when somebody is ready, or with `late` once somebody has been."""

    def __init__(self, late: bool = False) -> None:
        self._late = late
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.o.payload.eq(self.i.payload), self.i.ready.eq(self.o.ready)]
        (m.d.sync if self._late else m.d.comb).__iadd__(self.o.valid.eq(self.i.valid & self.o.ready))
        return m


@pytest.mark.slow
def test_no_offer_depends_on_its_acceptance(tmp_path: Path) -> None:
    """Within a cycle; that none waits over cycles is what patient sinks are for. Yosys looks for loops on the way."""
    made = {f"{c.__module__}.{c.__name__}": _make(c) for c in COMPONENTS if c not in AS_VERILOG}
    made["courteous"] = Courteous()
    broken = []
    for name, netlist in netlists(made, tmp_path).items():
        for port in handshakes(made[name]):
            if port.offers:
                cone = netlist.cone(netlist.port(f"{port.name}__valid"))
                broken += [f"{name}.{port.name}"] * (not cone.isdisjoint(netlist.port(f"{port.name}__ready")))
    assert broken == ["courteous.o"]


def test_a_monitor_sees_an_offer_that_is_taken_back() -> None:
    component = Courteous(late=True)

    async def bench(ctx: Any) -> None:
        ctx.set(component.i.valid, 1)
        ctx.set(component.o.ready, 1)
        await ctx.tick()
        ctx.set(component.o.ready, 0)
        for _ in range(3):
            await ctx.tick()

    with pytest.raises(AssertionError, match="o: an offer was taken back"):
        run(component, bench)
