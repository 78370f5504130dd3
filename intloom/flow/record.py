"""Record of a run for the report and `--json`, and the files of a run folder."""

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from intloom.arrays import save_array
from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.layers import chains
from intloom.compiler.program.memory_map import memory_map, memory_size
from intloom.compiler.program.program import Program, array_use
from intloom.files import write_text
from intloom.hw.spec.isa import QUEUED_UNITS, Unit, disassemble
from intloom.hw.spec.params import preset_name
from intloom.hw.spec.regs import Stall, stall_counter
from intloom.report.page import PAGE, RECORD, TIMELINE
from intloom.sim.checks import Check
from intloom.sim.result import RunResult
from intloom.sim.trace import Event, events, to_chrome, to_csv
from intloom.sim.trace.counters import counter_tracks

CSV = "layers.csv"
TRACE = "trace.json"
TRACE_CSV = "trace.csv"
UNIT_NAMES = [u.name.lower() for u in (*QUEUED_UNITS, Unit.CONTROL)]


def hardware_name(program: Program) -> str:
    """The preset that a program was compiled for, or `custom`."""
    return preset_name(program.params)


@dataclass(frozen=True, kw_only=True)
class Notes:
    """What a record says in addition to the run's results."""

    command: str = ""
    """What made the run."""
    why: str = ""
    """What limits it."""
    energy: Mapping[str, Any] = field(default_factory=dict)
    """An estimate, if one was asked for."""


_NO_NOTES = Notes()


def make_record(program: Program, result: RunResult, notes: Notes = _NO_NOTES) -> dict[str, Any]:
    """A run as plain values, for JSON; `program` has all regions of the model."""
    checks = result.checks
    return {
        "name": program.name,
        "hardware": hardware_name(program),
        "params": program.params.to_dict(),
        "fingerprint": program.params.fingerprint(),
        "source": program.source,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "backend": result.backend,
        # None where the backend counts no cycles.
        "cycles": result.cycles or None,
        "macs": program.macs,
        "vector_macs": program.vector_macs,
        "mac_use": array_use(program.macs, result.cycles, program.params) if result.cycles else None,
        "mismatches": sum(c.mismatches for c in checks),
        "compared_bytes": sum(c.bytes for c in checks),
        "sim_hz": result.sim_hz or None,
        "wall_s": result.wall_s,
        "build_s": result.build_s,
        "dram_bytes": result.dram_bytes or None,
        "conditions": dict(result.conditions),
        "predicted_cycles": program.predicted_cycles,
        "why": notes.why,
        "energy": notes.energy or None,
        "units": _units(result),
        "clock_stopped": dict(result.clock_stopped),
        "layers": _layers(program, result),
        "chains": _chains(program),
        "checks": [asdict(c) for c in checks],
        "first_divergence": None if result.first_divergence is None else result.first_divergence.to_dict(),
        "original": None if result.original is None else asdict(result.original),
    }


def _units(result: RunResult) -> list[dict[str, Any]]:
    if not result.counters:
        return []
    return [
        {
            "name": unit.name.lower(),
            "busy": result.counters.get(f"{unit.name}_BUSY", 0),
            "stalls": {s.name: result.counters.get(stall_counter(unit, s), 0) for s in Stall},
        }
        for unit in QUEUED_UNITS
    ]


def _chains(program: Program) -> list[dict[str, Any]]:
    word = program.params.word_bytes
    return [
        {"layers": list(c.layers), "dram_bytes": c.moved_words * word, "least_dram_bytes": c.least_words * word}
        for c in chains(program)
    ]


def _layers(program: Program, result: RunResult) -> list[dict[str, Any]]:
    counts = [0] * len(program.layers)
    for source in program.provenance:
        if 0 <= source.layer < len(counts):
            counts[source.layer] += 1
    compared: dict[str, list[Check]] = defaultdict(list)
    for check in result.checks:
        compared[check.layer].append(check)
    rows = []
    for index, layer in enumerate(program.layers):
        cost = result.layers[index] if index < len(result.layers) else None
        stalls = dict(cost.stalls) if cost else {}
        rows.append(
            {
                "index": index,
                "name": layer.name,
                "op": layer.op,
                "origin": list(layer.origin),
                "macs": layer.macs,
                "vector_macs": layer.vector_macs,
                "cycles": cost.cycles if cost else None,
                "mac_use": cost.mac_use if cost else None,
                "busy": dict(cost.busy) if cost else {},
                "stalls": stalls,
                "dram_bytes": layer.dram_words * program.params.word_bytes,
                "predicted_cycles": layer.predicted_cycles,
                "instructions": counts[index],
                "compared_bytes": sum(c.bytes for c in compared[layer.name]),
                "mismatches": sum(c.mismatches for c in compared[layer.name]),
                "compared_in": result.covered_by.get(layer.name, ""),
            }
        )
    return rows


def make_timeline(program: Program, result: RunResult) -> dict[str, Any]:
    """Every instruction: unit, layer, tile, first and last cycle (None without a trace), text.

    `local_memory` has the extents of scratchpad and weight memory: first and last word, first and last instruction.
    """
    spans = {e.index: (e.start, e.end) for e in trace_events(program, result)}
    rows: list[list[Any]] = []
    for index, (instruction, source) in enumerate(zip(program.instructions, program.provenance, strict=True)):
        start, end = spans.get(index, (None, None))
        rows.append([int(instruction.unit), source.layer, source.tile, start, end, disassemble(instruction)])
    return {"unit_names": UNIT_NAMES, "timeline": rows, "local_memory": _local_memory(program)}


def _local_memory(program: Program) -> list[dict[str, Any]]:
    extents = memory_map(program)
    return [
        {
            "name": name,
            "words": memory_size(program, memory),
            "extents": [[e.start, e.stop, e.first, e.last] for e in extents if e.memory is memory],
        }
        for name, memory in (("scratchpad", Memory.SCRATCH), ("weight memory", Memory.WEIGHT))
    ]


def trace_events(program: Program, result: RunResult) -> list[Event]:
    """All executed instructions with their cycles; empty if the backend or the hardware records no trace."""
    if result.pulses is None or not any(len(p) for p in result.pulses.started):
        return []
    return events(program, result)


def forget_run(folder: Path) -> None:
    """Remove the record of an earlier run and what is made of it, so that it cannot pass for that of a failed run."""
    for name in (RECORD, TIMELINE, CSV, TRACE, TRACE_CSV, PAGE):
        (folder / name).unlink(missing_ok=True)


def save_run(folder: Path, program: Program, result: RunResult, notes: Notes = _NO_NOTES) -> dict[str, Any]:
    """Write record, timeline, tables, trace and model outputs; return the record."""
    record, trace = make_record(program, result, notes), trace_events(program, result)
    names: dict[str, str] = {}
    for name, array in result.model_outputs.items():
        names[name] = _array_file(name, set(names.values()))
        save_array(folder / names[name], array)
    write_text(folder / TIMELINE, json.dumps(make_timeline(program, result), separators=(",", ":")))
    write_text(folder / CSV, layers_csv(record))
    if trace:
        counters = counter_tracks(program, result, trace)
        write_text(folder / TRACE, json.dumps(to_chrome(trace, record["name"], counters)))
        write_text(folder / TRACE_CSV, to_csv(trace))
    # Written last: a folder with a record is complete.
    write_text(folder / RECORD, json.dumps({**record, "outputs": names, "command": notes.command}, indent=1))
    return record


def layers_csv(record: Mapping[str, Any]) -> str:
    """The layers as CSV."""
    text = io.StringIO()
    plain = ["index", "name", "op", "macs", "vector_macs", "cycles", "mac_use"]
    plain += ["predicted_cycles", "dram_bytes", "instructions"]
    causes = sorted({cause for layer in record["layers"] for cause in layer["stalls"]})
    writer = csv.writer(text)
    writer.writerow([*plain, "compared_bytes", "mismatches", *causes])
    for layer in record["layers"]:
        stalls = [layer["stalls"].get(cause, 0) for cause in causes]
        writer.writerow([*(layer[k] for k in plain), layer["compared_bytes"], layer["mismatches"], *stalls])
    return text.getvalue()


def safe_name(name: str) -> str:
    """The name of a tensor or layer as a file name: characters outside A-Z, a-z, 0-9, `_`, `.`, `-` are replaced."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._")


def _array_file(name: str, taken: set[str]) -> str:
    """A unique file name for a tensor."""
    stem = safe_name(name) or "output"
    candidate, number = f"{stem}.npy", 1
    while candidate in taken:
        number += 1
        candidate = f"{stem}-{number}.npy"
    return candidate
