"""The counters of a completed run must not contradict the program or each other."""

import pytest

from intloom.common.errors import ExitCode, SimulationError
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import COUNTERS
from intloom.sim.host.run_program import HostReport
from intloom.sim.rtl.completion import require_completed
from intloom.sim.rtl.status import Status
from tests.support.graph_maker import GraphMaker

NANO = preset("nano")


@pytest.fixture(scope="module")
def program():
    maker = GraphMaker(2)
    return compile_graph(maker.graph(maker.conv(maker.input(8, 9, 11), 12, 3)), NANO)


def complete(program, **counters):
    counts = dict.fromkeys((register.name for register in COUNTERS), 0) | counters
    report = HostReport(
        ended="interrupt", fingerprint=NANO.fingerprint(), seconds=1.0, first_cycle=0, last_cycle=10,
        status={"error": 0, "done": 1}, error_index=0, counters=counts,
    )  # fmt: skip
    units = (0,) * len(QUEUED_UNITS)
    require_completed(program, report, Status(10, units, units, 0, 0, 0, ""), 100)


def test_an_array_utilization_above_100_percent_is_an_error(program):
    least = -(-sum(layer.macs for layer in program.layers) // NANO.macs)
    complete(program, CYCLES=least)
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
