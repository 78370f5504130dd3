"""Registers that count are found; each has a bench in which its highest bit rises, or a waiver."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from amaranth.hdl import Fragment, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from intloom.hw.down_counter import DownCounter
from tests.hw import top_bits_seen
from tests.hw.streams import run
from tools.coverage.counting_registers import all_keys, counting_registers
from tools.coverage.evidence import chosen
from tools.coverage.waivers import Waiver, read_waivers
from tools.mutate.planted import ROOT


class Example(wiring.Component):
    """Registers of all kinds."""

    def __init__(self) -> None:
        super().__init__({"step": In(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        level, copied = Signal(4, name="level"), Signal(4)
        compared, above = Signal(2), Signal(4)
        following, flag = Signal(4), Signal()
        state = Signal(data.StructLayout({"address": 6, "index": 3}))
        lanes = [Signal(5, name=f"sum{n}") for n in range(2)]
        left = DownCounter(3, "rows")
        m.d.comb += following.eq(Mux(self.step[0], level, 3) - 1)
        m.d.sync += [level.eq(following), copied.eq(copied), compared.eq(compared + 1 > 2), above.eq(level + 1)]
        m.d.sync += [flag.eq(flag + 1), state.address.eq(state.address + self.step), state.index.eq(state.address)]
        m.d.sync += [lane.eq(lane + self.step) for lane in lanes]
        left.step(m)
        return m


Example.__module__ = "intloom.hw.example"


def test_registers_that_take_a_sum_with_their_own_value_are_found() -> None:
    found = counting_registers(Example())
    names = ["level", "state part 1", "sum*", "sum*", "rows_left"]
    assert [register.name for register in found] == names
    assert {register.component for register in found} == {"example:Example"}
    assert [register.top.start for register in found] == [3, 5, 4, 4, 2]


def waived(key: str, waivers: list[Waiver]) -> bool:
    component, _, name = key.partition(" ")
    found = (w for w in waivers if w.kind == "register" and re.fullmatch(w.module, component))
    return any(re.fullmatch(w.name, name) for w in found)


def test_every_counting_register_has_a_bench_or_a_waiver() -> None:
    waivers = read_waivers()
    tested = {key for keys in top_bits_seen.evidence().values() for key in keys}
    without = {key for key in all_keys() if waived(key, waivers)}
    assert tested | without == all_keys(), "run the benches and tools.coverage.evidence, or write a waiver"
    assert not tested & without, "a bit with a waiver rises: delete the waiver"


@pytest.mark.slow
def test_every_bench_that_is_named_exists() -> None:
    """A test that was renamed would be evidence no more."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *top_bits_seen.evidence()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("steps", [31, 32])
def test_a_bench_in_which_a_highest_bit_stays_0_fails(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = frozenset({"example:Example state part 1", "example:Example sum*"})
    monkeypatch.setattr(top_bits_seen, "evidence", lambda: {"bench": keys})
    monkeypatch.delenv(top_bits_seen.RECORD_VARIABLE, raising=False)
    design = Example()

    async def bench(ctx):
        ctx.set(design.step, 1)
        await ctx.tick().repeat(steps)

    def attempt() -> None:
        with top_bits_seen.check("bench"):
            run(design, bench)

    if steps == 32:
        attempt()
    else:
        with pytest.raises(AssertionError, match=r"highest bits stay 0.*\['example:Example state part 1'\]"):
            attempt()


def test_watchers_cost_nothing_outside_of_such_a_test() -> None:
    assert not [*top_bits_seen.watchers(Fragment.get(Example(), None))]


def test_few_tests_are_chosen() -> None:
    seen = {"a": {"x"}, "b": {"x", "y"}, "c": {"z"}, "d": {"y"}}
    assert chosen(seen, {"x", "y", "z", "w"}) == {"b": ["x", "y"], "c": ["z"]}
