"""The timeline in the Chrome trace format, which Perfetto opens, and as a table."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intloom.common.atomic_write import write_text
from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.sim.trace.events import Event


@dataclass(frozen=True)
class CounterTrack:
    """A value over time; it holds from each sample until the next."""

    name: str
    samples: Sequence[tuple[int, Mapping[str, float]]]
    """Cycle and values by series."""


_COLUMNS = ("index", "unit", "kind", "layer", "tile", "note", "start", "end")
_LAYER_THREAD = len(QUEUED_UNITS)


def to_chrome(timeline: Iterable[Event], name: str, counters: Iterable[CounterTrack] = ()) -> dict[str, Any]:
    """A Chrome trace: one thread a unit, one for layers, and counter tracks; 1 us of the trace is 1 cycle."""
    records: list[dict[str, Any]] = [{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": name}}]
    threads = [*(u.name for u in QUEUED_UNITS), "layers"]
    for number, thread in enumerate(threads):
        records.append({"ph": "M", "pid": 0, "tid": number, "name": "thread_name", "args": {"name": thread}})
        # The index keeps the order of the units in the viewer.
        records.append(
            {"ph": "M", "pid": 0, "tid": number, "name": "thread_sort_index", "args": {"sort_index": number}}
        )
    # An iterator would be exhausted after the first use.
    timeline = list(timeline)
    records += [_slice(e) for e in timeline]
    records += _layer_slices(timeline)
    for track in counters:
        common = {"ph": "C", "pid": 0, "name": track.name}
        records += [{**common, "ts": cycle, "args": dict(values)} for cycle, values in track.samples]
    return {"traceEvents": records, "displayTimeUnit": "ns", "otherData": {"unit": "1 us = 1 cycle"}}


def _slice(event: Event) -> dict[str, Any]:
    arguments = {"instruction": event.index, "layer": event.layer, "tile": event.tile, "note": event.note}
    return _complete(f"{event.kind} {event.layer}", int(event.unit), event.start, event.end, arguments)


def _complete(name: str, thread: int, start: int, end: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "pid": 0, "tid": thread, "name": name, "ts": start, "dur": end - start, "args": arguments}


def _layer_slices(timeline: list[Event]) -> list[dict[str, Any]]:
    """One span a layer from its first start to its last end; async, since layers overlap."""
    spans: dict[str, tuple[int, int]] = {}
    for e in timeline:
        if e.layer:
            first, last = spans.get(e.layer, (e.start, e.end))
            spans[e.layer] = (min(first, e.start), max(last, e.end))
    records = []
    for number, (layer, (first, last)) in enumerate(spans.items()):
        common = {"pid": 0, "tid": _LAYER_THREAD, "cat": "layer", "id": number, "name": layer}
        records += [{**common, "ph": "b", "ts": first}, {**common, "ph": "e", "ts": last}]
    return records


def to_csv(timeline: Iterable[Event]) -> str:
    """A table with one row an instruction."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(_COLUMNS)
    table.writerows((e.index, e.unit.name, e.kind, e.layer, e.tile, e.note, e.start, e.end) for e in timeline)
    return out.getvalue()


def write_chrome(path: Path, timeline: Iterable[Event], name: str, counters: Iterable[CounterTrack] = ()) -> None:
    """Write the Chrome trace to `path`."""
    write_text(path, json.dumps(to_chrome(timeline, name, counters)))


def write_csv(path: Path, timeline: Iterable[Event]) -> None:
    """Write the table to `path`."""
    write_text(path, to_csv(timeline))
