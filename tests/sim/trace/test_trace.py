"""Timelines join pulses with instructions, and export to Chrome's format and to a table."""

import csv
import io
import json

import numpy as np
import pytest

from intloom.common.errors import UsageError
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.params import preset
from intloom.sim.result import RunResult
from intloom.sim.rtl.status import Pulses
from intloom.sim.trace import events, to_chrome, to_csv, write_chrome
from tests.support.graph_maker import GraphMaker

ORIGIN = 100


@pytest.fixture(scope="module")
def program():
    maker = GraphMaker(3)
    return compile_graph(maker.graph(maker.conv(maker.input(4, 6, 6), 8, 3)), preset("nano"))


@pytest.fixture
def result(program):
    """Every instruction starts ten cycles after the one before and takes five."""
    started, done = ([[] for _ in QUEUED_UNITS] for _ in range(2))
    for n, instruction in enumerate(program.instructions):
        if instruction.unit is not Unit.CONTROL:
            started[instruction.unit].append(ORIGIN + 10 * n)
            done[instruction.unit].append(ORIGIN + 10 * n + 5)
    pulses = Pulses(*(tuple(np.array(a, np.uint64) for a in rows) for rows in (started, done)))
    return RunResult(backend="rtl", outputs={}, wall_s=0.0, pulses=pulses, origin=ORIGIN)


def test_every_instruction_gets_its_own_cycles(program, result):
    timeline = events(program, result)
    assert [e.index for e in timeline] == [n for n, i in enumerate(program.instructions) if i.unit is not Unit.CONTROL]
    assert all((e.start, e.end) == (10 * e.index, 10 * e.index + 5) for e in timeline)
    assert {e.layer for e in timeline} <= {layer.name for layer in program.layers} | {""}


def test_chrome_trace_has_a_thread_for_every_unit_and_a_slice_for_every_instruction(program, result, tmp_path):
    timeline = events(program, result)
    write_chrome(tmp_path / "trace.json", timeline, "net")
    records = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = [r for r in records if r["ph"] == "X"]
    assert len(slices) == len(timeline)
    assert {r["args"]["name"] for r in records if r.get("name") == "thread_name"} >= {u.name for u in QUEUED_UNITS}
    begins, ends = ([r for r in records if r["ph"] == p] for p in "be")
    assert len(begins) == len(ends) > 0
    assert to_chrome(timeline, "net")["traceEvents"] == records


def test_the_table_has_a_row_for_every_instruction(program, result):
    timeline = events(program, result)
    rows = list(csv.DictReader(io.StringIO(to_csv(timeline))))
    assert [int(r["start"]) for r in rows] == [e.start for e in timeline]


def test_a_run_without_trace_is_refused(program, result):
    import dataclasses

    with pytest.raises(UsageError, match="trace = true"):
        events(program, dataclasses.replace(result, pulses=None))
