"""The counters of a completed run must not contradict the program or each other."""

from collections import Counter
from dataclasses import replace

import pytest

from intloom.common.errors import ExitCode, HardwareMismatchError, SimulationError
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import COUNTERS, Cause
from intloom.sim.host.run_program import HostReport
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.completion import require_completed
from intloom.sim.rtl.status import Status

NANO = preset("nano")


@pytest.fixture(scope="module")
def program():
    maker = GraphMaker(2)
    return compile_graph(maker.graph(maker.conv(maker.input(8, 9, 11), 12, 3)), NANO)


def complete(program, *, beats=(0, 0), bench_cycles=None, uncounted=0, **counters):
    """Counters of a run in which every unit had no instruction or stalled in all other cycles."""
    counts = dict.fromkeys((register.name for register in COUNTERS), 0) | counters
    instructions = Counter(i.unit for i in program.instructions)
    for unit in QUEUED_UNITS:
        counts[f"{unit.name}_DONE"] = counters.get(f"{unit.name}_DONE", instructions[unit])
        used = sum(counts[n] for n in counts if n.startswith(f"{unit.name}_") and not n.endswith("_DONE"))
        counts[f"{unit.name}_STALL_NO_INSTRUCTION"] += max(0, counts["CYCLES"] - used - uncounted)
    report = HostReport(
        ended="interrupt", fingerprint=NANO.fingerprint(), seconds=1.0, first_cycle=100,
        last_cycle=100 + (counts["CYCLES"] + 14 if bench_cycles is None else bench_cycles),
        status={"error": 0, "done": 1}, error_index=0, counters=counts,
    )  # fmt: skip
    units = (0,) * len(QUEUED_UNITS)
    require_completed(program, report, Status(10, units, units, 0, *beats, ""), 100)


def test_an_array_utilization_above_100_percent_is_an_error(program):
    least = -(-program.macs // NANO.macs)
    complete(program, CYCLES=least)
    complete(replace(program, layers=tuple(replace(k, vector_macs=k.macs) for k in program.layers)), CYCLES=least)
    with pytest.raises(SimulationError, match=rf"CYCLES is {least - 1}, .* above 100 %") as caught:
        complete(program, CYCLES=least - 1)
    assert caught.value.exit_code is ExitCode.SIMULATION


@pytest.mark.parametrize("unit", QUEUED_UNITS)
def test_a_unit_has_no_more_busy_and_stalled_cycles_than_the_program(program, unit):
    cycles = 1 << 20
    counts = {f"{unit.name}_BUSY": cycles - 5, f"{unit.name}_STALL_MEMORY": 3, f"{unit.name}_STALL_WAIT": 2}
    complete(program, CYCLES=cycles, **counts)
    with pytest.raises(SimulationError, match=f"unit {unit.name} counts"):
        complete(program, CYCLES=cycles - 1, **counts)


@pytest.mark.parametrize("unit", QUEUED_UNITS)
def test_every_instruction_is_counted(program, unit):
    done = sum(i.unit is unit for i in program.instructions)
    with pytest.raises(SimulationError, match=rf"unit {unit.name} has finished {done + 1} instructions of {done}"):
        complete(program, CYCLES=1 << 20, **{f"{unit.name}_DONE": done + 1})


@pytest.mark.parametrize("name", ["READ_BEATS", "WRITE_BEATS"])
def test_beats_are_those_of_the_memory(program, name):
    counts = {"READ_BEATS": 70, "WRITE_BEATS": 30}
    complete(program, CYCLES=1 << 20, beats=(70, 30), **counts)
    complete(program, CYCLES=1 << 20, **counts)
    with pytest.raises(SimulationError, match=f"counter {name} is {counts[name] + 1}, but the memory transferred"):
        complete(program, CYCLES=1 << 20, beats=(70, 30), **counts | {name: counts[name] + 1})


def test_cycles_are_those_of_the_bench(program):
    """A counter with 19 bits is found."""
    with pytest.raises(SimulationError, match=r"counter CYCLES is \d+, but \d+ cycles lie between"):
        complete(program, CYCLES=(1 << 20) + 5 - (1 << 19), bench_cycles=(1 << 20) + 5)


def test_stalls_that_are_not_counted_are_found(program):
    fewest, unit = min((sum(i.unit is unit for i in program.instructions), unit) for unit in QUEUED_UNITS)
    complete(program, CYCLES=1 << 20, uncounted=fewest + 1)
    with pytest.raises(SimulationError, match=f"unit {unit.name} counts 0 busy"):
        complete(program, CYCLES=1 << 20, uncounted=fewest + 2)


def test_every_other_end_is_an_error(program):
    """A broken rule of the bus, no interrupt, an interrupt without a reason, and an error with its cause and place."""
    units = (0,) * len(QUEUED_UNITS)
    counters = dict.fromkeys((register.name for register in COUNTERS), 0) | {"CYCLES": 1 << 20}
    counters |= {
        f"{u.name}_DONE": n for u, n in Counter(i.unit for i in program.instructions).items() if u in QUEUED_UNITS
    }
    good = HostReport(
        ended="interrupt", fingerprint=NANO.fingerprint(), seconds=1.0, first_cycle=100, last_cycle=100,
        status={"error": 0, "done": 1}, error_index=0, counters=counters,
    )  # fmt: skip
    status = Status(10, units, units, 0, 0, 0, "W fell")
    error = {"error": 1, "done": 0, "cause": Cause.READ_SLVERR, "unit": Unit.LOAD}
    for changes, said in (
        ({"ended": "violation"}, "broke a rule of AXI4 after 1048576 cycles: W fell"),
        ({"ended": "timeout"}, "gave no interrupt within 77 cycles"),
        ({"status": {"error": 0, "done": 0}}, "is neither done nor in error"),
        ({"status": error, "error_index": 1}, "with cause READ_SLVERR in unit LOAD at instruction #1 LOAD"),
        ({"status": error, "error_index": 10**6}, r"#1000000 \(past the program's"),
    ):
        with pytest.raises(SimulationError, match=said):
            require_completed(program, replace(good, **changes), status, 77)
    with pytest.raises(HardwareMismatchError, match="compile it for these parameters"):
        require_completed(program, replace(good, fingerprint=1), status, 77)
