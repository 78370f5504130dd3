"""The fast bench and the bare loop, tried on the stand-in accelerator."""

import dataclasses
import re
from itertools import chain

import psutil
import pytest

from intloom.common.errors import SimulationError
from intloom.compiler.program.memory import initial_memory
from intloom.sim.rtl.backend import RtlBackend, make_job
from intloom.sim.rtl.bare import build_bare, run_bare
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import Direction, InjectedError, MemorySettings, Response, RunFiles
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.recording import LoadedJob, record
from intloom.sim.rtl.status import read_pulses, read_snapshots, read_status
from intloom.sim.rtl.verilog import verilog_of
from tests.runtime.support import small_program
from tests.sim.parallel.networks import residual_network
from tests.sim.rtl.standin import BEATS, FINGERPRINT, VERILOG, copied, copy_job, fill, slow_memory

WORDS = 256


@pytest.fixture(scope="module")
def simulator():
    return FastBench().build(VERILOG)


@pytest.fixture
def files(tmp_path):
    return RunFiles(tmp_path)


def run(simulator, files, **changes):
    data = fill(files, WORDS)
    return data, FastBench().run(simulator, copy_job(WORDS, **changes), files)


@pytest.mark.parametrize("seed", range(4))
def test_the_copy_is_whole_whatever_the_memory_does(simulator, files, seed):
    data, report = run(simulator, files, memory=slow_memory(seed))
    assert report.ended == "interrupt"
    assert report.status == {"busy": 0, "done": 1, "error": 0, "cause": 0, "unit": 0}
    assert report.fingerprint == FINGERPRINT
    assert (copied(files, WORDS) == data).all()
    assert read_status(files.status).read_beats == read_status(files.status).write_beats == WORDS


def test_latency_and_bandwidth_cost_the_cycles_that_they_should(simulator, files):
    def cycles(**settings):
        return run(simulator, files, memory=MemorySettings(**settings))[1].counters["CYCLES"]

    bursts = WORDS // BEATS
    near = cycles(read_latency=0, write_latency=0)
    assert cycles(read_latency=10, write_latency=0) == near + 10 * bursts
    assert cycles(read_latency=0, write_latency=7) == near + 7 * bursts
    assert cycles(read_latency=0, write_latency=0, bandwidth=0.125) >= 2 * WORDS * 8 - 16
    # The stand-in reads a burst, then writes it: never both at once, so one beat a cycle is all that it could use.
    assert cycles(read_latency=0, write_latency=0, bandwidth=1.0) <= near + bursts


@pytest.mark.slow
@pytest.mark.parametrize("outstanding", [1, 2, 3])
def test_the_memory_holds_so_many_bursts_and_no_more(outstanding, files):
    """A write is held until its response, a read until its last beat; as many as are allowed overlap."""
    program, inputs = small_program()
    memory = MemorySettings(outstanding=outstanding, read_latency=40, write_latency=50)
    job = dataclasses.replace(make_job(program, RtlOptions(memory=memory)), log_bus=True)
    bench = FastBench()
    loaded = LoadedJob(job, initial_memory(program, inputs))
    bursts = record(bench, bench.build(verilog_of(program.params)), loaded, files).bursts
    for write, latency in ((0, memory.read_latency), (1, memory.write_latency)):
        cycles = bursts["cycle"][bursts["write"] == write]
        assert (cycles[outstanding:] - cycles[:-outstanding] >= latency).all()
        apart = outstanding - 1
        assert not apart or (cycles[apart:] - cycles[:-apart] < latency).any()


@pytest.mark.slow
def test_two_beats_a_cycle_are_one_of_each_direction():
    program, inputs = residual_network()

    def cycles(bandwidth):
        return RtlBackend(RtlOptions(memory=MemorySettings(bandwidth=bandwidth))).run(program, inputs).cycles

    unlimited = cycles(0.0)
    assert cycles(2.0) == cycles(3.0) == unlimited < cycles(1.0) < cycles(0.5)


def test_pulses_name_the_cycle_of_every_start_and_end(simulator, files):
    _, report = run(simulator, files)
    for unit in (0, 3):
        started, done = read_pulses(files.trace).started[unit], read_pulses(files.trace).done[unit]
        assert len(started) == len(done) == WORDS // BEATS
        assert (done > started).all()
        assert report.first_cycle <= started[0] and done[-1] <= report.last_cycle
    assert len(read_pulses(files.trace).started[1]) == len(read_pulses(files.trace).started[2]) == 0


def test_counters_are_read_at_the_end_of_every_layer(simulator, files):
    # One pulse may end several layers, and a layer without work of its own ends with the one before it.
    run(simulator, files, boundaries=[(3, 10), (3, 40), (0, 5), (3, 40), (3, 60)])
    snapshots, done = read_snapshots(files.snapshots), read_pulses(files.trace).done[3]
    assert [s.cycle for s in snapshots] == [int(done[n - 1]) for n in (10, 40, 40, 40, 60)]
    assert read_status(files.status).layers == 5
    # The register with this name counts words copied in the stand-in; it is read a few cycles after the boundary.
    for snapshot, words in zip(snapshots, (40, 160, 160, 160, 240), strict=True):
        assert words <= snapshot.counters["READ_BEATS"] <= words + 8


@pytest.mark.parametrize(
    ("response", "direction", "cause"),
    [
        (Response.SLVERR, Direction.READ, 5),
        (Response.DECERR, Direction.READ, 6),
        (Response.SLVERR, Direction.WRITE, 7),
        (Response.DECERR, Direction.WRITE, 8),
    ],
)
def test_injected_bus_errors_reach_the_accelerator(simulator, files, response, direction, cause):
    word = 40 if direction is Direction.READ else WORDS + 40
    error = InjectedError(word=word, response=response, direction=direction)
    _, report = run(simulator, files, memory=MemorySettings(error=error))
    assert (report.status["error"], report.status["cause"]) == (1, cause)


def test_an_access_outside_the_memory_is_answered_with_decerr(simulator, files):
    _, report = run(simulator, files, memory_words=2 * WORDS - 8)
    assert report.status["cause"] == 8
    assert read_status(files.status).done[3] == WORDS // BEATS - 1


def test_a_hang_ends_at_the_limit_with_the_state(files):
    hung = VERILOG.replace("else begin state <= AR; started_load <= 1; end", "else if (at < 100) state <= AR;")
    assert hung != VERILOG
    fill(files, WORDS)
    report = FastBench().run(FastBench().build(hung), copy_job(WORDS, limit=20_000), files)
    assert report.ended == "timeout"
    assert report.last_cycle - report.first_cycle == pytest.approx(20_000, abs=2)
    assert report.status["busy"] == 1
    assert read_status(files.status).done[3] == 104 // BEATS


BROKEN = {
    ("m_axi_wlast = beat == 3", "m_axi_wlast = beat == 2"): "WLAST before the last beat of its burst",
    ("m_axi_araddr = from;", "m_axi_araddr = from + 1;"): "is not aligned to 4 bytes",
    ("m_axi_arburst = 1,", "m_axi_arburst = 0,"): "must be an incrementing burst",
}


@pytest.mark.parametrize("change", BROKEN, ids=BROKEN.values())
def test_a_broken_bus_rule_is_named(change, files):
    correct, wrong = change
    assert correct in VERILOG
    fill(files, WORDS)
    job = copy_job(WORDS, memory=MemorySettings(stall_permille=500))
    report = FastBench().run(FastBench().build(VERILOG.replace(correct, wrong)), job, files)
    assert report.ended == "violation"
    assert BROKEN[change] in read_status(files.status).violation


_OFFERED = {
    "AR": ("araddr", "arlen", "arid", "arsize", "arburst"),
    "AW": ("awaddr", "awlen", "awid", "awsize", "awburst"),
    "W": ("wdata", "wstrb", "wlast"),
}
UNSTABLE = [*chain(*_OFFERED.values()), *(f"{channel.lower()}valid" for channel in _OFFERED)]
"""What must not change while it waits, of every channel."""


def _unstable() -> str:
    """The stand-in, of which each signal changes before it is taken, or each valid falls, where it is chosen."""

    def changed(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in UNSTABLE:
            return match[0]
        channel = name[: 1 if name[0] == "w" else 2]
        waits = f"(unstable == {UNSTABLE.index(name) + 1} & !m_axi_{channel}ready)"
        if name.endswith("valid"):
            return f"m_axi_{name} = ({value}) & !({waits} & cycles[0])"
        return f"m_axi_{name} = ({value}) ^ {waits}"

    choice = '  integer unstable;\n  initial if (!$value$plusargs("unstable=%d", unstable)) unstable = 0;\n'
    head, wires, rest = VERILOG.partition("  wire [39:0] from")
    rest, number = re.subn(r"m_axi_(\w+) = ((?:[^,;{]|\{[^}]*\})+)", changed, rest)
    assert number > len(UNSTABLE)
    return head + choice + wires + rest


@pytest.fixture(scope="module")
def unstable():
    return FastBench().build(_unstable())


@pytest.mark.parametrize("signal", ["", *UNSTABLE])
def test_an_offer_that_changes_is_named(signal, unstable, files):
    """Nothing else is wrong: the other channels are idle, and what is taken is right."""
    data = fill(files, WORDS)
    bench = FastBench(plusargs=(f"+unstable={UNSTABLE.index(signal) + 1 if signal else 0}",))
    report = bench.run(unstable, copy_job(WORDS, memory=MemorySettings(stall_permille=500)), files)
    if signal:
        channel = next(c for c in _OFFERED if signal.startswith(c.lower()))
        assert report.ended == "violation"
        assert read_status(files.status).violation.startswith(f"{channel} fell or changed")
    else:
        assert report.ended == "interrupt" and (copied(files, WORDS) == data).all()


def test_a_simulator_that_dies_is_reported_with_its_last_words(simulator, files):
    with pytest.raises(SimulationError, match=r"exit code 2:\nbench: cannot open .*memory\.bin"):
        FastBench().run(simulator, copy_job(WORDS), files)


def test_an_interrupt_leaves_no_process_behind(simulator, files):
    def interrupt(_status):
        raise KeyboardInterrupt

    fill(files, WORDS)
    endless = dataclasses.replace(copy_job(WORDS), limit=1 << 60, instructions=WORDS + 2)
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    with pytest.raises(KeyboardInterrupt):
        FastBench().run(simulator, endless, files, interrupt)
    assert {p.pid for p in psutil.Process().children(recursive=True)} == before


@pytest.mark.parametrize("seed", range(2))
def test_the_bare_loop_takes_as_many_cycles_as_the_fast_bench(simulator, files, seed):
    job = copy_job(WORDS, memory=dataclasses.replace(slow_memory(seed), stall_permille=0, bandwidth=0.0))
    data = fill(files, WORDS)
    bare = run_bare(build_bare(VERILOG), job, files)
    assert bare.finished
    assert (copied(files, WORDS) == data).all()
    fill(files, WORDS)
    assert abs(FastBench().run(simulator, job, files).counters["CYCLES"] - bare.cycles) <= 4


@pytest.mark.slow
def test_a_cache_whose_path_has_spaces(tmp_path, monkeypatch):
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path / "my cache"))
    built = FastBench().build(VERILOG)
    assert " " in str(built.binary) and built.binary.exists()
    files = RunFiles(tmp_path / "a run")
    files.folder.mkdir()
    data, report = run(built, files)
    assert report.ended == "interrupt" and (copied(files, WORDS) == data).all()
