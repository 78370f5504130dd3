"""The graph of a netlist computes what Amaranth's simulator does, for every operator and several widths."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Cat, Fragment, Module, Mux, Signal, Value, signed
from amaranth.hdl._ir import PortDirection, build_netlist
from amaranth.sim import Simulator

from tests.hw.formal.aig import Blaster, Graph

_CASES: dict[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "negate": lambda a, b: -a,
    "multiply": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a, b: ~a,
    "equal": lambda a, b: Cat(a == b, a != b),
    "compare": lambda a, b: Cat(a < b, a <= b, a > b, a >= b),
    "shift left": lambda a, b: a << b[:3],
    "shift right": lambda a, b: a >> b.as_unsigned(),
    "reduce": lambda a, b: Cat(a.any(), a.all(), a.xor(), a.bool()),
    "choose": lambda a, b: Mux(a[0], a, b),
    "bit": lambda a, b: Cat(a).bit_select(b[:3], 2),
    "word": lambda a, b: Cat(a).word_select(b[:2], 2),
    "matches": lambda a, b: a.as_unsigned().matches("0--1-", 7),
}


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize("case", _CASES)
def test_an_operator(case: str, is_signed: bool, rng: random.Random) -> None:
    a, b = Signal(signed(5) if is_signed else 5), Signal(signed(4) if is_signed else 4)
    result = Signal.like(_CASES[case](a, b))
    m = Module()
    m.d.comb += result.eq(_CASES[case](a, b))
    _check(m, (a, b), result, rng)


def test_statements(rng: random.Random) -> None:
    a, b, result = Signal(5), Signal(4), Signal(8)
    m = Module()
    m.d.comb += result.eq(b)
    with m.Switch(a):
        with m.Case("000--"):
            m.d.comb += result[2:5].eq(a)
        with m.Case(4, 9):
            m.d.comb += result.bit_select(b[:2], 2).eq(a)
        with m.Default():
            with m.If(b[0]):
                m.d.comb += result[7].eq(1)
            with m.Elif(b[1]):
                m.d.comb += result.eq(a + b)
    _check(m, (a, b), result, rng)


def _check(m: Module, inputs: tuple[Signal, ...], result: Signal, rng: random.Random) -> None:
    graph = Graph()
    ports = {f"i{k}": (signal, PortDirection.Input) for k, signal in enumerate(inputs)}
    netlist = build_netlist(Fragment.get(m, None), {**ports, "o": (result, PortDirection.Output)})
    words = {f"i{k}": [graph.input() for _ in signal] for k, signal in enumerate(inputs)}
    blaster = Blaster(graph, netlist, words.__getitem__, _no_read, lambda _, a, b: graph.product(a, b))
    outputs = blaster.word(netlist.top.ports_o["o"])
    steps = [[rng.randrange(1 << len(signal)) for signal in inputs] for _ in range(60)]

    async def compare(ctx: Any) -> None:
        for step in steps:
            bits = {0: 0}
            for signal, word, value in zip(inputs, words.values(), step, strict=True):
                ctx.set(signal.as_unsigned(), value)
                bits |= {literal >> 1: value >> at & 1 for at, literal in enumerate(word)}
            for at, (x, y) in enumerate(graph.gates, 1):
                if at not in bits:
                    bits[at] = (bits[x >> 1] ^ x & 1) & (bits[y >> 1] ^ y & 1)
            computed = sum((bits[x >> 1] ^ x & 1) << at for at, x in enumerate(outputs))
            assert computed == ctx.get(result.as_unsigned()), step

    simulator = Simulator(m)
    simulator.add_testbench(compare)
    simulator.run()


def _no_read(index: int, address: object) -> list[int]:
    raise AssertionError("there is no memory")
