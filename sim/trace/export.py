"""The timeline in the Chrome trace format, which Perfetto opens, and as a table."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.sim.trace.events import Event


@dataclass(frozen=True)
class CounterTrack:
    """A value over time; it holds from each sample until the next."""

    name: str
    samples: Sequence[tuple[int, Mapping[str, float]]]
    """Cycle and values by series."""


_COLUMNS = ("index", "unit", "kind", "layer", "tile", "note", "start", "end")


@dataclass(frozen=True)
class _Slice:
    """An instruction or a layer."""

    name: str
    start: int
    end: int
    arguments: Mapping[str, Any]


def to_chrome(timeline: Iterable[Event], name: str, counters: Iterable[CounterTrack] = ()) -> dict[str, Any]:
    """A Chrome trace: threads of each unit, threads of layers, and counter tracks; 1 us of the trace is 1 cycle."""
    # An iterator would be exhausted after the first use.
    timeline = list(timeline)
    groups = {unit.name: [_instruction(e) for e in timeline if e.unit is unit] for unit in QUEUED_UNITS}
    groups["layers"] = _layers(timeline)
    records: list[dict[str, Any]] = [{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": name}}]
    threads = [
        (f"{group} {row}" if row > 1 else group, slices)
        for group, every in groups.items()
        for row, slices in enumerate(_rows(every), 1)
    ]
    for number, (thread, slices) in enumerate(threads):
        common: dict[str, Any] = {"pid": 0, "tid": number}
        records.append({**common, "ph": "M", "name": "thread_name", "args": {"name": thread}})
        # The index keeps the order of the threads in the viewer.
        records.append({**common, "ph": "M", "name": "thread_sort_index", "args": {"sort_index": number}})
        for one in slices:
            times = {"ts": one.start, "dur": one.end - one.start}
            records.append({**common, "ph": "X", "name": one.name, **times, "args": dict(one.arguments)})
    for track in counters:
        common = {"ph": "C", "pid": 0, "name": track.name}
        records += [{**common, "ts": cycle, "args": dict(values)} for cycle, values in track.samples]
    return {"traceEvents": records, "displayTimeUnit": "ns", "otherData": {"unit": "1 us = 1 cycle"}}


def _instruction(event: Event) -> _Slice:
    arguments = {"instruction": event.index, "layer": event.layer, "tile": event.tile, "note": event.note}
    return _Slice(f"{event.kind} {event.layer}", event.start, event.end, arguments)


def _layers(timeline: list[Event]) -> list[_Slice]:
    """One slice a layer from its first start to its last end."""
    spans: dict[str, tuple[int, int]] = {}
    for e in timeline:
        if e.layer:
            first, last = spans.get(e.layer, (e.start, e.end))
            spans[e.layer] = (min(first, e.start), max(last, e.end))
    return [_Slice(layer, first, last, {}) for layer, (first, last) in spans.items()]


def _rows(slices: Iterable[_Slice]) -> list[list[_Slice]]:
    """Rows without overlap, at least one: Perfetto (v52) drops a slice that ends after the one that it began in."""
    rows: list[list[_Slice]] = [[]]
    for one in sorted(slices, key=lambda s: s.start):
        free = next((row for row in rows if not row or row[-1].end <= one.start), None)
        if free is None:
            rows.append(free := [])
        free.append(one)
    return rows


def to_csv(timeline: Iterable[Event]) -> str:
    """A table with one row an instruction."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(_COLUMNS)
    table.writerows((e.index, e.unit.name, e.kind, e.layer, e.tile, e.note, e.start, e.end) for e in timeline)
    return out.getvalue()
