"""Timelines join pulses with instructions, and export to Chrome's format and to a table."""

import csv
import io
import json
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from intloom.common.errors import UsageError
from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.memory_map import memory_map
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import Stall, stall_counter
from intloom.sim.backend import RtlBackend
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.result import RunResult
from intloom.sim.rtl.status import Pulses, Snapshot
from intloom.sim.trace import events, to_chrome, to_csv
from intloom.sim.trace.counters import counter_tracks
from intloom.sim.trace.events import Event

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
    (tmp_path / "trace.json").write_text(json.dumps(to_chrome(timeline, "net")))
    records, _ = read_trace(tmp_path / "trace.json")
    slices = [r for r in records if r["ph"] == "X"]
    assert len(slices) == len(timeline) + len({e.layer for e in timeline} - {""})
    assert {r["args"]["name"] for r in records if r.get("name") == "thread_name"} >= {u.name for u in QUEUED_UNITS}
    assert to_chrome(timeline, "net")["traceEvents"] == records


COMMON = {"ph": str, "pid": int, "name": str}
TIMED = COMMON | {"ts": int}
FIELDS = {
    "M": COMMON | {"args": dict},
    "X": TIMED | {"tid": int, "dur": int, "args": dict},
    "C": TIMED | {"args": dict},
}
"""Fields that the Trace Event Format requires of each phase, and their types here."""
METADATA = {"process_name": {"name": str}, "thread_name": {"name": str}, "thread_sort_index": {"sort_index": int}}


def read_trace(path):
    """The records of a trace file and the samples of its counters, checked against the Trace Event Format."""
    trace = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"} and trace["displayTimeUnit"] in ("ms", "ns")
    tracks, ends = defaultdict(list), defaultdict(int)
    for record in trace["traceEvents"]:
        fields, phase = {n: type(value) for n, value in record.items()}, record["ph"]
        if phase == "M":
            fields.pop("tid", None)
            assert {n: type(value) for n, value in record["args"].items()} == METADATA[record["name"]]
        assert fields == FIELDS[phase]
        assert record.get("ts", 0) >= 0 and record.get("dur", 0) >= 0
        if phase == "X":
            assert record["ts"] >= ends[record["tid"]], "Perfetto drops slices of a thread that overlap"
            ends[record["tid"]] = record["ts"] + record["dur"]
        if phase == "C":
            assert record["args"] and all(type(v) in (int, float) for v in record["args"].values())
            tracks[record["name"]].append((record["ts"], record["args"]))
    return trace["traceEvents"], tracks


def test_the_tracks_of_a_run_are_its_counters(tmp_path):
    maker = GraphMaker(3)
    x = maker.conv(maker.conv(maker.input(4, 12, 12), 8, 3), 8, 3)
    program = compile_graph(maker.graph(x, maker.max_pool(x, 2)), preset("nano"))
    result = RtlBackend().run(program, maker.random_inputs())
    timeline = events(program, result)
    tracks = counter_tracks(program, result, timeline)
    (tmp_path / "trace.json").write_text(json.dumps(to_chrome(timeline, "net", tracks)))
    records, tracks = read_trace(tmp_path / "trace.json")
    assert max(r["ts"] + r["dur"] for r in records if r["ph"] == "X") <= result.cycles + 1
    starts = [r["ts"] for r in records if r["ph"] == "X"]
    assert Counter(starts) >= Counter(e.start for e in timeline), "none is left out"
    assert sum(r["name"] == "thread_name" for r in records) > len(QUEUED_UNITS) + 1, "some overlap"
    # Stalled cycles are the integral of their track; memory in use rises with each write and ends at 0.
    for unit in QUEUED_UNITS:
        samples = tracks[f"{unit.name} stalls, %"]
        for stall in Stall:
            parts = (a[stall.name] * (end - start) / 100 for (start, a), (end, _) in pairwise(samples))
            assert sum(parts) == pytest.approx(result.snapshots[-1].counters[stall_counter(unit, stall)])
    for memory in ("scratchpad", "weight memory"):
        samples = tracks[f"{memory} words in use"]
        assert max(args["words"] for _, args in samples) > 0 == samples[-1][1]["words"]
        assert min(args["words"] for _, args in samples) == 0
        assert [cycle for cycle, _ in samples] == sorted({cycle for cycle, _ in samples})
    # The tracks end with the counters of the last layer, which the bench reads before the run is over.
    left = result.cycles + result.origin - result.snapshots[-1].cycle
    for name, count in result.snapshots[-1].counters.items():
        assert 0 <= result.counters[name] - count <= left


def test_stalls_are_shares_of_the_cycles_between_two_layers_of_a_region():
    """Regions follow each other, whatever cycle each one started at; one without counters has no samples."""
    memory, wait = (stall_counter(Unit.MAC, s) for s in (Stall.MEMORY, Stall.WAIT))

    def region(cycles, origin, *ends):
        snapshots = tuple(Snapshot(origin + end, {memory: m, wait: w}) for end, m, w in ends)
        return RunResult(backend="rtl", outputs={}, wall_s=0.0, cycles=cycles, origin=origin, snapshots=snapshots)

    regions = (region(100, 7, (40, 8, 4), (40, 9, 9), (100, 20, 34)), region(10, 5), region(50, 3, (50, 5, 0)))
    program = compile_graph((maker := GraphMaker(1)).graph(maker.conv(maker.input(4, 4, 4), 4)), preset("nano"))
    tracks = counter_tracks(program, replace(regions[0], regions=regions), [])
    (samples,) = (t.samples for t in tracks if t.name == "MAC stalls, %")
    shown = [(cycle, values["MEMORY"], values["WAIT"]) for cycle, values in samples]
    assert shown == [(0, 20.0, 10.0), (40, 20.0, 50.0), (100, 0.0, 0.0), (110, 10.0, 0.0), (160, 0.0, 0.0)]
    assert {name for _, values in samples for name in values} == {s.name for s in Stall}
    alone = next(t for t in counter_tracks(program, regions[0], []) if t.name == "MAC stalls, %")
    assert alone.samples == samples[:3]


def test_words_are_in_use_from_the_start_of_their_writer_to_the_end_of_their_last_reader(program, result):
    timeline = events(program, result)
    # What the host reads after the end is in use until it is written.
    cycles = {e.index: (e.start, e.end) for e in timeline}
    tracks = {t.name: t.samples for t in counter_tracks(program, result, timeline)}
    for name, memory in (("scratchpad", Memory.SCRATCH), ("weight memory", Memory.WEIGHT)):
        lives = [
            (cycles[e.first][0], cycles[e.last if e.last in cycles else e.first][1], e.stop - e.start)
            for e in memory_map(program)
            if e.memory is memory and e.first in cycles
        ]
        assert lives
        samples = tracks[f"{name} words in use"]
        assert {cycle for cycle, _ in samples} == {cycle for life in lives for cycle in life[:2]}
        for cycle, values in samples:
            assert values == {"words": sum(words for start, end, words in lives if start <= cycle < end)}


def test_what_overlaps_is_in_another_row():
    """Of the same unit; a slice that begins where another one ends is in its row."""
    spans = [(0, 10), (5, 20), (10, 12), (11, 30), (20, 25)]
    timeline = [
        Event(index=n, unit=Unit.MAC, kind="CONV", layer="", tile=0, note="", start=start, end=end)
        for n, (start, end) in enumerate(spans)
    ]
    records = to_chrome(timeline, "net")["traceEvents"]
    names = {r["tid"]: r["args"]["name"] for r in records if r["name"] == "thread_name"}
    rows = {r["args"]["instruction"]: names[r["tid"]] for r in records if r["ph"] == "X"}
    assert rows == {0: "MAC", 1: "MAC 2", 2: "MAC", 3: "MAC 3", 4: "MAC"}
    assert {*names.values()} == {*(unit.name for unit in QUEUED_UNITS), "MAC 2", "MAC 3", "layers"}


def test_the_table_has_a_row_for_every_instruction(program, result):
    timeline = events(program, result)
    rows = list(csv.DictReader(io.StringIO(to_csv(timeline))))
    assert [int(r["start"]) for r in rows] == [e.start for e in timeline]


def test_a_run_without_trace_is_refused(program, result):
    with pytest.raises(UsageError, match="trace = true"):
        events(program, replace(result, pulses=None))


def test_what_did_not_finish_has_no_time_and_the_others_keep_theirs(program, result):
    """As after an error: each unit has finished some of its instructions, of which it had started one more."""
    whole = events(program, result)
    for kept in (0, 1, 3):
        pulses = Pulses(
            tuple(c[: kept + 1] for c in result.pulses.started), tuple(c[:kept] for c in result.pulses.done)
        )
        found = events(program, replace(result, pulses=pulses))
        expected = [e for unit in QUEUED_UNITS for e in [w for w in whole if w.unit is unit][:kept]]
        assert found == sorted(expected, key=lambda e: e.index)
