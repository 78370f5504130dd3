"""Mutation testing itself: weak stimuli leave holes, strong ones none, and harmless faults are told from holes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tools.components import components, name_of
from tools.mutate.netlist import harmless, make_mutants
from tools.mutate.record import Port, Recorder
from tools.mutate.replay import checked_output, replay
from tools.mutate.score import Score, read_scores, write_score
from tools.mutate.targets import NOT_MUTATED, targets

FAULTS = 60


class Accumulate(wiring.Component):
    """Adds up bytes, in more bits than one output word shows; wide enough for more than one word a port."""

    def __init__(self) -> None:
        super().__init__({"value": In(signed(8)), "total": Out(signed(70))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.total.eq((self.total << 3) + self.value)
        return m


class Remember(Accumulate):
    """The same with a memory of its own, which Amaranth elaborates only once."""

    def __init__(self) -> None:
        super().__init__()
        self.memories = [Memory(shape=8, depth=4, init=[])]

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.submodules.memory = self.memories[0]
        return m


class Toggle(Accumulate):
    """One bit that is 1 at the start."""

    def __init__(self) -> None:
        wiring.Component.__init__(self, {"value": In(signed(8)), "total": Out(1, init=1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.total.eq(self.total ^ self.value[0])
        return m


def simulate(folder: Path, values: list[int], component: type[Accumulate] = Accumulate) -> Path:
    """Record a simulation; returns the folder of the netlist."""
    recorder = Recorder(component, folder)
    dut = component()
    simulator = recorder.simulator(dut)

    async def bench(ctx: Any) -> None:
        for value in values:
            ctx.set(dut.value, value)
            await ctx.tick()

    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return next(f for f in folder.iterdir() if f.is_dir())


@pytest.mark.slow
def test_strong_stimuli_see_what_weak_ones_do_not(tmp_path: Path, rng: random.Random):
    weak = simulate(tmp_path / "weak", [1, 1])
    strong = simulate(tmp_path / "strong", [rng.randint(-128, 127) for _ in range(200)])
    mutations = make_mutants(strong, FAULTS, seed=1)
    assert make_mutants(weak, FAULTS, seed=1) == mutations
    seen_weak, seen_strong = (replay(folder, len(mutations)).seen for folder in (weak, strong))
    assert 0 < sum(seen_weak) < sum(seen_strong)
    holes = [m for m, seen in zip(mutations, seen_strong, strict=True) if not seen]
    assert all(harmless(strong, holes)), holes
    visible = mutations[seen_strong.index(True)]
    assert harmless(strong, [visible, *holes[:1], visible]) == [False, *[True] * len(holes[:1]), False]


def test_a_component_with_a_memory_is_recorded(tmp_path: Path) -> None:
    netlist = simulate(tmp_path, [1, 2, 3], Remember)
    assert [path.stat().st_size for path in netlist.glob("*.record")] == [3 * 4 * (1 + 3)]


@pytest.mark.slow
def test_a_register_keeps_its_initial_value_although_a_fault_sits_at_its_output(tmp_path: Path) -> None:
    folder = simulate(tmp_path, [1, 0, 1, 1] * 20, Toggle)
    mutations = make_mutants(folder, FAULTS, seed=1)
    assert any("-port Q" in m for m in mutations)
    assert any(replay(folder, len(mutations)).seen)
    # A record that the netlist without faults does not make is left out.
    (record,) = folder.glob("*.record")
    (folder / "other.record").write_bytes(record.read_bytes()[:-1] + b"\1")
    found = replay(folder, len(mutations))
    assert (found.records, found.left_out) == (2, 1)
    record.unlink()
    with pytest.raises(SystemExit, match="differs from all records"):
        replay(folder, len(mutations))


def test_every_component_is_mutated_or_has_a_reason() -> None:
    names = {name_of(c) for c in components()}
    assert targets().keys() | NOT_MUTATED.keys() == names
    assert not targets().keys() & NOT_MUTATED.keys()


def test_a_payload_is_compared_only_while_it_is_valid() -> None:
    wide, valid, payload = Port("a", 40, True), Port("o__valid", 1, False), Port("o__payload__data", 8, False)
    ports = [wide, valid, payload]
    assert checked_output(payload, ports).startswith("if (cycle[2]) {")
    result, flag = Port("result", 8, False), Port("result_valid", 1, False)
    quotient = Port("quotient", 9, False)
    for port in (result, quotient):
        assert checked_output(port, [wide, flag, port]).startswith("if (cycle[2]) {")
    for port in (valid, Port("p__payload", 8, False), result):
        assert not checked_output(port, ports).startswith("if")


def test_scores_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    first, second = Score("k", 10, 8, 1), Score("k").plus(4, 2, 0).plus(4, 2, 0)
    write_score(path, "b:B", first)
    write_score(path, "a:A", second)
    assert read_scores(path) == {"a:A": Score("k", 8, 4, 0), "b:B": first}
    assert (round(first.percent, 1), second.percent) == (88.9, 50.0)
