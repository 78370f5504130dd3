"""Files of a run folder: names that cannot collide, and tables that add up."""

import csv
import io
from dataclasses import asdict, fields
from types import SimpleNamespace

from intloom.compiler.schedule import compile_graph
from intloom.flow.record import Notes, _array_file, layers_csv, make_record
from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import Stall, stall_counter
from intloom.sim.checks import Check
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.result import LayerResult, RunResult


def test_output_names_become_different_safe_file_names():
    taken = set()
    names = ["1", "10", "/a/b", "_a_b", "a:b", "../../etc/passwd", "", "output0", "output0"]
    for name in names:
        file = _array_file(name, taken)
        assert "/" not in file
        assert not file.startswith(".")
        taken.add(file)
    assert len(taken) == len(names)


def test_the_table_has_a_column_for_every_stall_cause():
    base = dict.fromkeys(("op", "macs", "vector_macs", "mac_use", "predicted_cycles", "dram_bytes", "instructions"), 0)
    base |= {"compared_bytes": 0, "mismatches": 0}
    layers = [
        {**base, "index": 0, "name": "a", "cycles": 5, "stalls": {"MAC_STALL_WAIT": 2}},
        {**base, "index": 1, "name": "b", "cycles": 7, "stalls": {"VEC_STALL_MEMORY": 3}},
    ]
    rows = list(csv.DictReader(io.StringIO(layers_csv({"layers": layers}))))
    assert [(r["MAC_STALL_WAIT"], r["VEC_STALL_MEMORY"]) for r in rows] == [("2", "0"), ("0", "3")]
    assert sum(int(r["cycles"]) for r in rows) == 12


def test_a_record_has_what_the_run_and_the_program_say(rng):
    """Every figure is another number, so none can stand for another."""
    maker = GraphMaker(0)
    program = compile_graph(maker.graph(maker.conv(maker.max_pool(maker.input(8, 9, 9), 2, 2), 8, 3)), preset("nano"))
    numbers = iter(rng.sample(range(1, 10_000), 100))
    counters = {stall_counter(u, s): next(numbers) for u in QUEUED_UNITS for s in Stall}
    counters |= {f"{u.name}_BUSY": next(numbers) for u in QUEUED_UNITS}
    layers = [
        LayerResult(
            name=layer.name, op=layer.op, macs=layer.macs, vector_macs=layer.vector_macs, cycles=next(numbers),
            mac_use=next(numbers) / 10_000, stalls={"MAC_STALL_WAIT": next(numbers)}, busy={"MAC": next(numbers)},
        )
        for layer in program.layers
    ]  # fmt: skip
    checks = [Check("t", layer.name, "golden", next(numbers), next(numbers)) for layer in (*layers, *layers)]
    figures = {n: next(numbers) for n in ("cycles", "sim_hz", "wall_s", "build_s", "dram_bytes")}
    shares = {n: {"x": next(numbers)} for n in ("conditions", "clock_stopped")}
    first = SimpleNamespace(to_dict=lambda: {"layer": "a"})
    result = RunResult(
        backend="rtl", outputs={}, counters=counters, layers=tuple(layers), checks=tuple(checks),
        first_divergence=first, **figures, **shares,
    )  # fmt: skip
    record = make_record(program, result, Notes(why="because", energy={"uj": next(numbers)}))
    assert {n: record[n] for n in figures | shares} == figures | shares
    assert (record["why"], record["energy"]["uj"] > 0, record["first_divergence"]) == ("because", True, {"layer": "a"})
    assert record["mismatches"] == sum(c.mismatches for c in checks)
    assert record["compared_bytes"] == sum(c.bytes for c in checks)
    told = {f"{u['name']}_BUSY".upper(): u["busy"] for u in record["units"]}
    told |= {f"{u['name'].upper()}_STALL_{s}": n for u in record["units"] for s, n in u["stalls"].items()}
    assert told == counters
    assert sum(row["instructions"] for row in record["layers"]) == len(program.instructions) - 2
    for row, run, layer in zip(record["layers"], layers, program.layers, strict=True):
        assert {f.name: row[f.name] for f in fields(run)} == asdict(run)
        assert row["predicted_cycles"] == layer.predicted_cycles
        assert row["dram_bytes"] == layer.dram_words * program.params.word_bytes
        assert row["compared_bytes"] == sum(c.bytes for c in checks if c.layer == run.name)
        assert row["mismatches"] == sum(c.mismatches for c in checks if c.layer == run.name)
    nothing = make_record(program, RunResult(backend="isa", outputs={}, wall_s=1.0))
    absent = ("cycles", "mac_use", "sim_hz", "dram_bytes", "energy", "first_divergence", "original")
    assert [nothing[n] for n in absent] == [None] * len(absent)
    assert nothing["units"] == nothing["checks"] == []
