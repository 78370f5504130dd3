"""Mutation testing itself: a weak bench leaves holes, a strong one none, and harmless faults are told from holes."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from amaranth.hdl import Fragment, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from tools.components import components, name_of
from tools.mutate import component as planting
from tools.mutate.__main__ import measuring_order
from tools.mutate.bench import Bench, Outcome
from tools.mutate.component import Sample
from tools.mutate.component import run as mutate
from tools.mutate.equivalence import prove, write_netlist
from tools.mutate.listed import LIST, read_list, unexplained
from tools.mutate.score import ROOT, Score, first_seed, read_scores, write_score
from tools.mutate.sites import INVERTED, STUCK_AT_0, STUCK_AT_1, Mutant, Site, draw, plant, sites
from tools.mutate.subject import subject_of
from tools.mutate.targets import NOT_MUTATED, targets

BENCH = """
from amaranth.sim import Simulator
from intloom.hw.{module} import {name}

def test_{name}():
    Simulator({name}({arguments}))
    {check}
"""


class Accumulate(wiring.Component):
    """Adds up bytes, and holds the sum at 1 while `clear` is 1."""

    def __init__(self) -> None:
        super().__init__({"value": In(signed(8)), "clear": In(1), "total": Out(signed(12))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.total.eq(Mux(self.clear, 1, self.total + self.value))
        return m


class LowHalf(wiring.Component):
    """Copies a byte while `take` is 1, and shows its low half."""

    def __init__(self) -> None:
        super().__init__({"take": In(1), "value": In(8), "half": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        copy = Signal(8, reset_less=True)
        with m.If(self.take):
            m.d.sync += copy.eq(self.value)
        m.d.comb += self.half.eq(copy[:4])
        return m


def elaborated(mutant: Mutant | None = None) -> tuple[Accumulate, Fragment]:
    """The component, with a fault or without one."""
    component = Accumulate()
    fragment = Fragment.get(component, None)
    assert mutant is None or plant(fragment, mutant)
    return component, fragment


def total(mutant: Mutant | None) -> int:
    """The sum of -1 and 5, which is known without the fault."""
    component, fragment = elaborated(mutant)
    simulator = Simulator(fragment)
    found = 0

    async def bench(ctx: Any) -> None:
        nonlocal found
        for value in (-1, 5):
            ctx.set(component.value, value)
            await ctx.tick()
        found = ctx.get(component.total)

    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def site(*operand: int) -> Site:
    """A site of the only statement."""
    (location,) = {(s.file, s.line) for s in sites(elaborated()[1])}
    return Site(*location, 0, operand)


@pytest.mark.parametrize(
    ("operand", "bit", "kind", "expected"),
    [
        ((), 0, INVERTED, 2),
        ((), 11, STUCK_AT_1, 4 - 2048),
        ((), 2, STUCK_AT_0, 0),
        ((0,), 0, INVERTED, 1),
        ((1, 1), 7, STUCK_AT_0, 127 + 5),
        ((1, 1), 3, STUCK_AT_1, -1 + 13),
        ((1, 0), 3, STUCK_AT_1, 15 + 5),
    ],
)
def test_faults_change_one_bit(operand: tuple[int, ...], bit: int, kind: str, expected: int) -> None:
    assert total(None) == 4
    assert total(Mutant(site(*operand), bit, kind)) == expected


def test_sites_have_the_bits_that_count() -> None:
    found = {key.operand: known for key, known in sites(elaborated()[1]).items()}
    # The sum has 13 bits, of which the register keeps 12; a byte has 8.
    assert {operand: known.bits for operand, known in found.items()} == {
        (): (0, 12),
        (0,): (0, 1),
        (1,): (0, 12),
        (1, 0): (0, 12),
        (1, 1): (0, 8),
        (2,): (0, 1),
    }
    assert found[2,].constant and not found[1,].constant
    drawn = draw(sites(elaborated()[1]), 30, seed=1)
    assert len(drawn) == len(set(drawn)) == 30 and drawn == draw(sites(elaborated()[1]), 30, seed=1)
    assert all(m.kind == INVERTED for m in drawn if m.site.operand == (2,))
    assert not plant(elaborated()[1], Mutant(site(), 12, INVERTED))
    assert drawn[0].source == "m.d.sync += self.total.eq(Mux(self.clear, 1, self.total + self.value))"


def bench_of(folder: Path, check: str) -> Bench:
    """A bench of a small component that runs `check`."""
    file = folder / f"test_{folder.name}.py"
    file.write_text(BENCH.format(module="bus.skid_buffer", name="SkidBuffer", arguments="8", check=check))
    return Bench("bus.skid_buffer:SkidBuffer", (str(file),), folder)


def test_a_bench_finds_a_fault_if_one_of_its_tests_fails(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "import os; assert 'FAULT' not in os.environ")
    bench.measure()
    (mutant,) = draw(bench.extents(), 1, seed=1)
    assert not bench.run(mutant).found
    os.environ["FAULT"] = "1"
    try:
        outcome = bench.run(mutant)
    finally:
        del os.environ["FAULT"]
    assert outcome.found and outcome.by.endswith("test_SkidBuffer AssertionError")


def test_a_hang_is_a_failure_and_an_error_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.mutate.bench._SPARE_SECONDS", 1)
    bench = bench_of(tmp_path, "import os\n    while 'HANG' in os.environ: pass")
    bench.measure()
    (mutant,) = draw(bench.extents(), 1, seed=1)
    monkeypatch.setenv("HANG", "1")
    assert bench.run(mutant).by.endswith("does not end")
    monkeypatch.setattr("tools.mutate.bench.plant", lambda *_: False)
    monkeypatch.delenv("HANG")
    with pytest.raises(SystemExit, match="ends with 72"):
        bench.run(mutant)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, pytest.param(10, marks=pytest.mark.nightly)])
def test_the_bench_of_a_small_component_finds_a_sample_of_faults(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make test` has this sample; `make mutate` has every component. After its limit it gets no more faults.

    A second call goes on where the first has ended.
    """
    monkeypatch.setattr(planting, "_MIN_FAULTS", count)
    component = "bus.skid_buffer:SkidBuffer"
    bench, folder = [str(ROOT / file) for file in targets()[component]], tmp_path / "faults"
    score = mutate(bench, Sample(40, seconds=0), folder, Score(component, seed=first_seed(component)))
    assert score.faults == count and score.percent == 100.0, capsys.readouterr().out
    assert not score.has(count + 1) and not score.has(40)
    first = (folder / "outcomes.txt").read_text()
    both = mutate(bench, Sample(count + 1), folder, score)
    assert both.faults == count + 1 and both.found + both.harmless == count + 1 and both.has(count + 1)
    assert len((folder / "outcomes.txt").read_text().splitlines()) == 3
    assert (folder / "outcomes.txt").read_text() not in first


def test_a_component_has_no_more_faults_at_some_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "measure", lambda self: None)
    monkeypatch.setattr(Bench, "extents", lambda self: sites(elaborated()[1]))
    monkeypatch.setattr(Bench, "run", lambda self, mutant: Outcome(found=True))
    number = len(draw(sites(elaborated()[1]), 10_000, seed=1))
    score = mutate((), Sample(number + 1), tmp_path, Score("a:A", faults=number - 1, found=number - 1))
    assert score.faults == score.found == number and score.has(number + 1)
    # More draws may find what is rarely drawn.
    assert not score.has(10_000)


@pytest.mark.slow
def test_proofs_tell_harmless_faults_from_others(tmp_path: Path) -> None:
    harmful = Mutant(site(1, 1), 3, INVERTED)
    faults: list[Mutant | None] = [None, harmful, None]
    for number, fault in enumerate(faults):
        write_netlist(*elaborated(), tmp_path / f"gold{number}.il")
        write_netlist(*elaborated(fault), tmp_path / f"gate{number}.il")
    assert prove(tmp_path, 4, seconds=20) == [True, False, True, False]


@pytest.mark.slow
def test_registers_that_no_output_depends_on_are_not_compared(tmp_path: Path) -> None:
    """Bits 4 to 7 of the copy are read by their own enable only."""
    bits = (3, 4, 7)
    for number, bit in enumerate(bits):
        for name in ("gold", "gate"):
            component = LowHalf()
            fragment = Fragment.get(component, None)
            (copied,) = (s for s, extent in sites(fragment).items() if extent.bits == (0, 8))
            assert name == "gold" or plant(fragment, Mutant(copied, bit, STUCK_AT_1))
            write_netlist(component, fragment, tmp_path / f"{name}{number}.il")
    assert prove(tmp_path, len(bits), seconds=20) == [False, True, True]


def test_every_component_has_a_bench_or_a_reason() -> None:
    names = {name_of(c) for c in components()}
    assert targets().keys() == names - NOT_MUTATED.keys() and names > NOT_MUTATED.keys()
    assert not [file for bench in targets().values() for file in bench if not (ROOT / file).exists()]


def test_a_component_has_one_entry_in_the_list():
    """A second one would replace it."""
    names = [name.value for name, _ in yaml.compose(LIST.read_text(encoding="utf-8")).value]
    assert len(names) == len({*names})


def test_listed_faults_are_in_the_sources() -> None:
    # An assigned structure is a statement of Amaranth's.
    files = [*(ROOT / "hw").rglob("*.py"), Path(data.__file__)]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    lines = {line.strip() for line in sources.splitlines()}
    for component, reasons in read_list().items():
        assert component in targets()
        for (line, fault), reason in reasons.items():
            assert line in lines and "statement " in fault and len(reason) > 20, (line, fault)


def test_a_listed_fault_may_be_one_of_many(tmp_path: Path) -> None:
    faults = [Mutant(site(), 3, INVERTED), Mutant(site(), 4, INVERTED), Mutant(site(), 3, STUCK_AT_1)]
    *bits, other = [(mutant.source, mutant.fault) for mutant in faults]
    path = tmp_path / "list.yaml"
    line, fault = bits[0][0], bits[0][1].replace("bit 3", "bit *")
    path.write_text(f'a:A:\n- line: "{line}"\n  faults: ["{fault}"]\n  reason: none\n')
    assert unexplained("a:A", [*bits, other], path) == [other]


def test_one_slow_bench_does_not_take_the_night_of_others() -> None:
    slow, quick = Score("slow", 10, current=False, seconds=900), Score("quick", 90, current=False, seconds=900)
    late, early = Score("late", 11, seconds=300), Score("early", 39, seconds=600)
    enough = {"has": Score("has", 40), "all": Score("all", 30, asked=40)}
    scores = {"late": late, "slow": slow, "early": early, "quick": quick, **enough}
    assert measuring_order(scores, [*scores, "new"], 40) == ["new", "quick", "slow", "early", "late"]


def test_scores_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    component = "bus.skid_buffer:SkidBuffer"
    first = Score(component, 10, 8, 1, (("a line", "a fault"),))
    write_score(path, first)
    second = Score(component, 9, 4, 1, tuple(("a line", f"fault {number}") for number in range(4)), seed=3)
    write_score(path, second)
    assert read_scores(path) == {component: second}
    assert (round(first.percent, 1), second.percent) == (88.9, 50.0)
    path.write_text(path.read_text().replace(subject_of(component), "other"))
    assert not read_scores(path)[component].current
