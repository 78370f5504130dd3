"""The detailed bench on Verilator and on Icarus, tried on the stand-in accelerator; and its monitors bite."""

import pytest

from intloom.sim.rtl.detailed import WAVES, DetailedBench, IcarusBench
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import MemorySettings, RunFiles
from intloom.sim.rtl.status import read_pulses, read_snapshots, read_status
from intloom.sim.rtl.write_log import read_writes
from tests.sim.rtl.standin import BEATS, VERILOG, WORD_BYTES, copied, copy_job, fill

WORDS = 64


@pytest.fixture
def files(tmp_path):
    return RunFiles(tmp_path)


def run(bench, files, verilog=VERILOG, **changes):
    data = fill(files, WORDS)
    return data, bench.run(bench.build(verilog), copy_job(WORDS, **changes), files)


@pytest.mark.parametrize(
    "bench",
    [DetailedBench(), pytest.param(IcarusBench(), marks=pytest.mark.needs("iverilog"))],
    ids=lambda b: b.name,
)
@pytest.mark.parametrize("stall", [0, 300])
def test_the_copy_is_whole_on_both_simulators(bench, files, stall):
    data, report = run(bench, files, memory=MemorySettings(stall_permille=stall))
    assert (report.ended, read_status(files.status).violation) == ("interrupt", "")
    assert report.status["done"] == 1
    assert (copied(files, WORDS) == data).all()
    assert len(read_pulses(files.trace).done[3]) == WORDS // BEATS


@pytest.mark.needs("iverilog")
def test_both_simulators_take_the_same_cycles(files):
    cycles = {run(b, files)[1].counters["CYCLES"] for b in (DetailedBench(), IcarusBench())}
    assert len(cycles) == 1


BROKEN = {
    "valid falls before the transfer": (
        "m_axi_arvalid = state == AR,",
        "m_axi_arvalid = state == AR & !cycles[0],",
        r"m_axi AR: rule 1: valid must stay high",
    ),
    "payload changes before the transfer": (
        "m_axi_awaddr = from + {length, 2'b00}",
        "m_axi_awaddr = from + {length, 2'b00} + {cycles[0], 4'd0}",
        r"m_axi AW: rule 2: addr must stay",
    ),
    "address between words": (
        "m_axi_araddr = from;",
        "m_axi_araddr = from + 1;",
        r"m_axi: rule 4: AR of 4 beats at 0x40000001 must be aligned to 4 bytes",
    ),
    "burst of the wrong kind": ("m_axi_arburst = 1,", "m_axi_arburst = 0,", r"m_axi: rule 4: .* must be incrementing"),
    "done without started": (
        "{done_store, 2'b00, done_load};",
        "{done_store, done_load, 1'b0, done_load};",
        r"trace: rule 1: VEC finished 1 of 0 started",
    ),
}


@pytest.mark.slow
@pytest.mark.needs("iverilog")
@pytest.mark.parametrize("name", BROKEN)
def test_monitors_name_the_broken_rule(files, name):
    correct, wrong, message = BROKEN[name]
    assert correct in VERILOG
    _, report = run(IcarusBench(), files, VERILOG.replace(correct, wrong), memory=MemorySettings(stall_permille=500))
    assert report.ended == "violation"
    import re

    assert re.search(message, read_status(files.status).violation)


@pytest.mark.slow
@pytest.mark.needs("liblz4-dev")
@pytest.mark.nightly
def test_waves_are_left_in_the_run_folder(files):
    _, report = run(DetailedBench(waves=True), files)
    assert report.ended == "interrupt"
    assert (files.folder / WAVES).stat().st_size > 1000


@pytest.mark.parametrize(
    "memory",
    [
        MemorySettings(read_latency=0, write_latency=0),
        MemorySettings(read_latency=60, write_latency=30),
        MemorySettings(read_latency=5, write_latency=5, bandwidth=0.25),
    ],
    ids=["at-once", "latency", "bandwidth"],
)
def test_the_fast_bench_takes_about_as_many_cycles(files, memory):
    """Two memories of separate makings: they differ by a few cycles a burst."""
    slow = run(DetailedBench(), files, memory=memory)[1].counters["CYCLES"]
    fast = run(FastBench(), files, memory=memory)[1].counters["CYCLES"]
    assert abs(slow - fast) <= 8 * WORDS // BEATS


def test_latency_costs_its_cycles_in_every_burst(files):
    """The stand-in waits for every burst before it asks for the next."""

    def cycles(**settings):
        return run(DetailedBench(), files, memory=MemorySettings(**settings))[1].counters["CYCLES"]

    bursts = WORDS // BEATS
    near = cycles(read_latency=20, write_latency=20)
    assert cycles(read_latency=30, write_latency=20) == near + 10 * bursts
    assert cycles(read_latency=20, write_latency=27) == near + 7 * bursts


def test_counters_are_read_at_the_end_of_every_layer(files):
    run(DetailedBench(), files, boundaries=[(3, 4), (3, 12)])
    snapshots, done = read_snapshots(files.snapshots), read_pulses(files.trace).done[3]
    assert [s.cycle for s in snapshots] == [int(done[3]), int(done[11])]
    # The register with this name counts words copied in the stand-in; it is read a little after the boundary.
    counts = [s.counters["READ_BEATS"] for s in snapshots]
    assert 4 * BEATS <= counts[0] < 12 * BEATS <= counts[1] <= WORDS
    assert read_status(files.status).layers == 2


def test_every_stored_word_is_recorded_as_on_the_fast_bench(files):
    records = []
    for bench in (DetailedBench(), FastBench()):
        run(bench, files, log_writes=True)
        writes = read_writes(files.writes, WORD_BYTES)
        records.append([(int(w["writer"]), int(w["word"]), int(w["mask"]), w["data"].tobytes()) for w in writes])
    assert records[0] == records[1]
    assert len(records[0]) == WORDS
