"""What stops a run is said in full: cause, instruction, state of every unit; other programs are refused."""

import dataclasses
import tempfile

import psutil
import pytest

from intloom.common.errors import HardwareMismatchError, SimulationError
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.sim.backend import RtlBackend
from intloom.sim.regress.faults import FAULTS
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.verilog import verilog_of

NANO = preset("nano")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def case():
    maker = GraphMaker(2)
    graph = maker.graph(maker.conv(maker.input(8, 9, 11), 12, 3))
    return compile_graph(graph, NANO), maker.random_inputs()


def message(program, inputs, **options):
    with pytest.raises(SimulationError) as caught:
        RtlBackend(RtlOptions(**options)).run(program, inputs)
    return str(caught.value)


def test_a_hang_is_told_with_the_wait_that_never_holds(case):
    program, inputs = case
    text = message(FAULTS["deadlock"].mutate(program), inputs, watchdog=3000)
    assert "cause WATCHDOG" in text
    assert "which waits for STORE 0/1" in text
    for unit in ("LOAD", "MAC", "VEC", "STORE"):
        assert f"\n  {unit}: " in text


def test_without_a_watchdog_the_bench_gives_up_after_its_own_limit(case):
    program, inputs = case
    text = message(FAULTS["deadlock"].mutate(program), inputs, watchdog=0, limit=5000)
    assert "no interrupt within 5000 cycles" in text


def test_a_bus_error_names_the_instruction_and_its_layer(case):
    program, inputs = case
    text = message(program, inputs, memory=FAULTS["write-slverr"].settings(program))
    assert "cause WRITE_SLVERR in unit STORE at instruction #" in text
    assert "[conv0, tile" in text


def test_a_program_for_other_hardware_is_refused(case):
    program, inputs = case
    other = dataclasses.replace(program, params=NANO.replace(axi_burst=16))
    with pytest.raises(HardwareMismatchError, match="compile it for these parameters"):
        RtlBackend(RtlOptions(verilog=verilog_of(NANO))).run(other, inputs)


def test_a_simulator_that_is_killed_midway_tells_how_far_it_was_and_leaves_nothing(case, tmp_path, monkeypatch):
    program, inputs = case
    # A folder of its own: others may be simulating on this machine.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    victims = []

    def kill(progress):
        if progress.layers_done or progress.cycle > 500:
            victims.extend(p for p in psutil.Process().children(recursive=True) if p.is_running())
            for victim in victims:
                victim.kill()

    endless = FAULTS["deadlock"].mutate(program)
    with pytest.raises(SimulationError) as caught:
        RtlBackend(RtlOptions(watchdog=0, limit=1 << 40)).run(endless, inputs, progress=kill)
    text = str(caught.value)
    assert "the simulator was killed by SIGKILL" in text
    assert "which waits for STORE 0/1" in text
    for unit in ("LOAD", "MAC", "VEC", "STORE"):
        assert f"\n  {unit}: " in text
    assert victims
    assert not psutil.wait_procs(victims, timeout=5)[1]
    assert not list(tmp_path.iterdir())
