"""Suites, runner, store and reports; real cases run on the smallest preset."""

import dataclasses
import json
import os
import signal
from xml.etree import ElementTree as ET

import pytest

from intloom.common.errors import CapacityError, EnvironmentFault, UsageError
from intloom.compiler.ir import Add
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind, make
from intloom.sim import dask_cluster
from intloom.sim.isa_sim.registry import SEMANTICS
from intloom.sim.processes import Processes
from intloom.sim.random_programs.hardware import RANDOM_SETS
from intloom.sim.random_programs.program import NO_LAG, Step, random_program
from intloom.sim.regress import runner
from intloom.sim.regress.case import Case, CaseResult, Outcome, Tools
from intloom.sim.regress.execute import execute
from intloom.sim.regress.graphs import RECIPES, make_graph
from intloom.sim.regress.reports import junit, to_json, write_reports
from intloom.sim.regress.runner import Summary, run_cases
from intloom.sim.regress.store import RESULTS, Store
from intloom.sim.regress.suites import GROUPS, SUITES, stress_hardware, suite
from intloom.sim.regress.version import project_version
from tests.support.shapes import SHAPES

TOOLS = Tools(compile_graph)


def result(name="a", outcome=Outcome.PASS, message=""):
    key = f"key-{name}"
    return CaseResult(
        suite="smoke", name=name, key=key, outcome=outcome, seconds=0.5, message=message, reproduce=f"run {name}",
        version=project_version(),
    )  # fmt: skip


def test_every_suite_has_cases_with_names_of_their_own():
    for name in SUITES:
        cases = suite(name)
        assert cases
        assert len({c.name for c in cases}) == len(cases)
        assert len({c.key for c in cases}) == len(cases)
    assert len(suite("all")) == sum(len(suite(n)) for n in SUITES)
    assert {c.suite for c in suite("nightly")} == set(GROUPS["nightly"])


def test_an_unknown_suite_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match=r"smoke, ops, networks, .*, random, soak, nightly, all, not 'smok'"):
        suite("smok")


def test_every_operation_of_the_ops_suite_has_a_recipe_and_every_recipe_is_used():
    used = {c.graph for name in ("smoke", "ops", "stress") for c in suite(name)}
    assert used == set(RECIPES)


def test_stress_cases_run_on_twenty_shapes_that_follow_their_seed():
    assert stress_hardware(3) == stress_hardware(3)
    assert len({c.hardware for c in suite("stress")}) == RANDOM_SETS == 20


def test_equal_cases_give_equal_graphs():
    first, inputs = make_graph("chain", 5, {"nodes": 4})
    again, same = make_graph("chain", 5, {"nodes": 4})
    assert [n.name for n in first.nodes] == [n.name for n in again.nodes]
    assert all((inputs[k] == same[k]).all() for k in inputs)


def test_the_store_gives_back_what_passed_and_survives_a_cut_line(tmp_path):
    store = Store(tmp_path)
    for r in (result("a"), result("b", Outcome.FAIL), result("c")):
        store.add(r)
    with (tmp_path / RESULTS).open("a") as file:
        file.write('{"suite": "smoke", "na')
    assert set(Store(tmp_path).passed()) == {"key-a", "key-c"}


def test_a_case_that_failed_after_it_passed_is_run_again(tmp_path):
    store = Store(tmp_path)
    store.add(result("a"))
    store.add(result("a", Outcome.FAIL))
    assert not store.passed()


def test_a_stopped_run_goes_on_where_it_ended(tmp_path, monkeypatch):
    ran = []

    def counted(case, tools):
        ran.append(case.name)
        return dataclasses.replace(result(case.name), key=case.key)

    monkeypatch.setattr(runner, "execute", counted)
    cases = suite("smoke")
    run_cases(cases[:2], TOOLS, Store(tmp_path))
    summary = run_cases(cases, TOOLS, Store(tmp_path))
    assert (summary.resumed, len(summary.results), summary.ok) == (2, len(cases), True)
    assert ran == [c.name for c in cases]
    Store(tmp_path).forget({c.key for c in cases})
    run_cases(cases, TOOLS, Store(tmp_path))
    assert len(ran) == 2 * len(cases)


def test_what_passed_with_other_sources_is_run_again(tmp_path):
    store = Store(tmp_path)
    store.add(result("a"))
    store.add(dataclasses.replace(result("b"), version="of yesterday"))
    assert set(store.passed()) == {"key-a"}


def test_a_fresh_case_leaves_the_others_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "execute", lambda case, tools: dataclasses.replace(result(case.name), key=case.key))
    cases = suite("smoke")
    run_cases(cases, TOOLS, Store(tmp_path))
    Store(tmp_path).forget({cases[0].key})
    run_cases(cases[:1], TOOLS, Store(tmp_path))
    assert set(Store(tmp_path).passed()) == {c.key for c in cases}


def test_reports_hold_every_case_and_name_the_command_that_reproduces_a_failure(tmp_path):
    summary = Summary((result("a"), result("b", Outcome.FAIL, "tensor <x>\x00 differs"), result("c", Outcome.ERROR)), 0)
    assert not summary.ok
    assert [r.name for r in summary.failed] == ["b", "c"]
    root = ET.fromstring(junit(summary))
    assert root[0].attrib["tests"] == "3"
    assert (root[0].attrib["failures"], root[0].attrib["errors"]) == ("1", "1")
    assert "reproduce: run b" in root.find(".//failure").text
    assert json.loads(to_json(summary))["counts"] == {"pass": 1, "fail": 1, "error": 1}
    paths = write_reports(summary, tmp_path / "reports")
    assert all(p.stat().st_size for p in paths.values())


def refusing(_graph, _params):
    raise CapacityError("too large")


def test_a_case_that_cannot_be_compiled_is_an_error_with_its_reason():
    found = execute(suite("smoke")[0], Tools(refusing))
    assert (found.outcome, found.message) == (Outcome.ERROR, "CapacityError: too large")


def test_a_network_needs_a_way_to_load_it():
    assert "gave no way to load" in execute(suite("networks")[0], TOOLS).message


def test_a_scheduler_that_cannot_be_reached_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_cluster, "_CONNECT_SECONDS", 1)
    with pytest.raises(EnvironmentFault, match=r"cannot reach the Dask scheduler at tcp://127.0.0.1:9"):
        run_cases(suite("smoke"), TOOLS, Store(tmp_path), where=Processes(dask="tcp://127.0.0.1:9"))


def deadly(graph, params):
    """A compiler that dies of residual graphs, and refuses others."""
    if any(isinstance(n, Add) for n in graph.nodes):
        os.kill(os.getpid(), signal.SIGKILL)
    return refusing(graph, params)


@pytest.mark.slow
def test_a_case_that_kills_its_process_is_an_error_and_the_others_are_run(tmp_path):
    summary = run_cases(suite("smoke"), Tools(deadly), Store(tmp_path), where=Processes(2))
    assert [r.name for r in summary.results] == [c.name for c in suite("smoke")]
    dead = [r for r in summary.results if "the process that ran it died" in r.message]
    assert [r.name.split("-")[0] for r in dead] == ["residual"]
    assert all("too large" in r.message for r in summary.results if r not in dead)


@pytest.mark.slow
def test_smoke_passes_on_the_rtl(tmp_path):
    summary = run_cases(suite("smoke"), TOOLS, Store(tmp_path))
    assert summary.ok, [r.message for r in summary.failed]
    assert all(r.cycles > 0 and r.compared_bytes > 0 for r in summary.results)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["", *dict.fromkeys(c.fault for c in suite("soak") if c.fault)])
def test_random_programs_end_as_they_must(fault):
    """With their faults, on one accelerator instead of many."""
    case = next(c for c in suite("soak") if c.fault == fault)
    found = execute(dataclasses.replace(case, hardware=SHAPES["whole"].to_toml()), TOOLS)
    assert (found.outcome, found.message) == (Outcome.PASS, "")
    assert found.cycles > 0
    assert found.instructions > 0


@pytest.mark.slow
def test_a_random_program_that_fails_is_told_by_the_instructions_that_are_needed(monkeypatch):
    def wrong(machine, instruction):
        right(machine, instruction)
        machine.scratch[instruction["out_base"]] ^= 1

    def short(seed, hardware):
        steps = [Step(make(kind, m1=1, m2=1, shift=6, out_base=64), NO_LAG) for kind in (Kind.VMUL, Kind.VADD)]
        return random_program(seed, hardware).with_steps(steps)

    right = SEMANTICS[Kind.VADD]
    monkeypatch.setitem(SEMANTICS, Kind.VADD, wrong)
    monkeypatch.setattr("intloom.sim.regress.execute.random_program", short)
    found = execute(dataclasses.replace(suite("random")[0], hardware=SHAPES["whole"].to_toml()), TOOLS)
    first, *needed = found.message.splitlines()
    assert found.outcome is Outcome.FAIL
    assert "VADD" in first
    assert "scratchpad word 0x40, byte" in first
    assert first.endswith("; the 1 of 2 instructions that are needed:")
    assert [line.split()[0] for line in needed] == ["VADD"]


@pytest.mark.slow
@pytest.mark.parametrize("case", suite("faults"), ids=lambda c: c.name)
def test_every_fault_ends_in_its_own_error(case: Case):
    found = execute(case, TOOLS)
    assert found.outcome is Outcome.PASS, found.message
