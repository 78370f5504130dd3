"""A hang names the unit without progress, and ends after a time that follows from the program."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from intloom.common.errors import SimulationError
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import Instruction, Kind, Unit, encode, make
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import Cause
from intloom.sim.bench.workload import dense_program
from intloom.sim.rtl.backend import RtlBackend, watchdog_of
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.npu.disturbed import simulator
from tests.sim.random_programs.short_runs import Ending, checked, ending
from tests.sim.rtl.planted import HANGS, PARAMS, Fault, plant, plusarg
from tests.support.shapes import SHAPES

NANO = preset("nano")
EVERY = SHAPES["nano"]
WATCHDOG = 2000
STORE = make(Kind.STORE, dram=2048, n0=4)
LOAD = make(Kind.LOAD, dram=2048, n0=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "unit", "index"),
    [
        # The older instruction waits for the STORE that gets no response.
        ((make(Kind.VCOPY, wait_store=1), STORE), Unit.STORE, 2),
        ((LOAD, LOAD.with_fields(wait_store=1), make(Kind.VCOPY, wait_load=2), STORE), Unit.STORE, 4),
        # All wait: the oldest is named.
        ((LOAD, make(Kind.VCOPY, wait_store=1), STORE.with_fields(wait_vec=1)), Unit.VEC, 2),
    ],
)
def test_a_hang_names_the_unit_without_progress(work: Sequence[Instruction], unit: Unit, index: int) -> None:
    """On a memory that does not answer writes."""
    program, silent = checked(EVERY, *map(encode, work)), MemorySettings(write_latency=10 * WATCHDOG)
    found = ending(simulator(EVERY), EVERY, program, limit=20 * WATCHDOG, watchdog=WATCHDOG, memory=silent)
    assert found == Ending(Cause.WATCHDOG, unit, index)


def test_the_default_watchdog_follows_the_longest_instruction_and_the_memory() -> None:
    short, _ = dense_program(NANO, side=4, blocks=1, repeats=1)
    long, _ = dense_program(NANO, side=16, blocks=4, repeats=1)
    usual = RtlOptions()
    assert watchdog_of(short, usual) < 20_000
    assert watchdog_of(long, usual) > 4 * 16 * 16 * 9 * 16
    slow = RtlOptions(memory=MemorySettings(read_latency=10_000, bandwidth=0.001, stall_permille=900))
    assert watchdog_of(short, slow) > 40_000 + 64_000


STORE_AFTER = {Unit.MAC: {"wait_mac": 1}, Unit.VEC: {"wait_vec": 1}, Unit.LOAD: {"wait_load": 2}}


def _waiting(unit: Unit, *, store_first: bool) -> tuple[Program, int]:
    """Two LOADs, then an instruction of `unit` and a STORE that waits for it; and the index of the former."""
    program, _ = dense_program(PARAMS, side=8, blocks=1, repeats=1)
    begin_, weights, pixels, conv, store, _ = program.instructions
    of_unit = {Unit.MAC: [conv], Unit.VEC: [make(Kind.VCOPY, wait_load=2, out_w=8, out_h=4)], Unit.LOAD: []}[unit]
    loads = [weights.with_fields(wait_mac=0), pixels.with_fields(wait_mac=0)]
    waiting = store.with_fields(**{"wait_mac": 0} | STORE_AFTER[unit])
    body = [waiting, *loads, *of_unit] if store_first else [*loads, *of_unit, waiting]
    code = (begin_, *body, make(Kind.END, wait_store=1))
    last = code.index(([*loads, *of_unit])[-1])
    # Counters of a completed run are compared with the layer's products.
    layer = replace(program.layers[0], macs=program.layers[0].macs if unit is Unit.MAC else 0)
    provenance = (program.provenance[0],) * len(code)
    return replace(program, instructions=code, provenance=provenance, layers=(layer,)), last


@pytest.fixture(scope="module")
def faulty() -> str:
    return plant(verilog_of(PARAMS))


def _run(verilog: str, fault: Fault | None, program: Program) -> None:
    bench = FastBench(taps=True, plusargs=(plusarg(fault),))
    RtlBackend(RtlOptions(bench=bench, verilog=verilog)).run(program, {})


@pytest.mark.slow
@pytest.mark.parametrize("store_first", [False, True], ids=["after", "first"])
@pytest.mark.parametrize("hang", HANGS, ids=[h.name.replace(" ", "-") for h in HANGS])
def test_a_unit_that_never_finishes_is_named_and_not_the_store_that_waits(
    faulty: str, hang: Fault, store_first: bool
) -> None:
    """Within the default watchdog of a run, counted from the last progress."""
    program, index = _waiting(hang.unit, store_first=store_first)
    with pytest.raises(SimulationError) as raised:
        _run(faulty, hang, program)
    message = str(raised.value)
    found = re.search(r"stopped after (\d+) cycles with cause WATCHDOG in unit (\w+) at instruction #(\d+)", message)
    assert found is not None, message
    assert (found[2], int(found[3])) == (hang.unit.name, index), message
    # Before the hang the program makes progress for less than a watchdog's time.
    assert int(found[1]) < 2 * watchdog_of(program, RtlOptions()) < 20_000


@pytest.mark.slow
def test_without_a_fault_the_programs_of_hangs_complete(faulty: str) -> None:
    for unit in STORE_AFTER:
        program, _ = _waiting(unit, store_first=False)
        _run(faulty, None, program)
