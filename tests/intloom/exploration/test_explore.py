"""Exploration: spaces, budgets, the front, resumption, and points against programs compiled by themselves."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import LocalCluster

import intloom
from intloom.cli.entry import run as main
from intloom.common.errors import ParameterError
from intloom.compiler.ir import Conv
from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.program import MemoryTiming, Provenance
from intloom.compiler.schedule import compile_graph
from intloom.exploration import advice, points
from intloom.exploration.device import Device, clock_of, device_of
from intloom.exploration.energy import choose_technology, energy
from intloom.exploration.explore import Budget, Exploration, Tell, explore, misses_of
from intloom.exploration.limits import changes_of, explain
from intloom.exploration.points import memory_of
from intloom.exploration.space import Space, device_space, read_space
from intloom.exploration.work import Cycles, _accesses, work_of
from intloom.flow.compiling import compile_model
from intloom.hw.area.model import total
from intloom.hw.spec.isa import Kind, make
from intloom.hw.spec.params import changed, preset
from intloom.hw.spec.softmax import PASSES
from intloom.sim.processes import Processes
from intloom.sim.regress.graphs import GraphMaker

SMALL = {"rows": [4, 8], "cols": [4, 8], "scratch_kib": [32, 256]}
SPACE = Space(preset("nano"), SMALL)


def budget(device: Device | None = None, **asked) -> Budget:
    return Budget(device=device or device_of("LFE5U-85F"), technology=choose_technology("45nm"), **asked)


@pytest.fixture(scope="module")
def model(quantized_models) -> Path:
    return quantized_models("c2f")


def exploration(model: Path, where: Processes, tell: Tell | None = None) -> Exploration:
    return explore([(model, 1.0)], SPACE, budget(bandwidth=100), where=where, tell=tell)


@pytest.fixture(scope="module")
def explored(model):
    return exploration(model, Processes())


def test_a_point_has_the_cycles_and_traffic_of_the_program_compiled_by_itself(model, explored):
    for point in explored.points:
        memory = memory_of(point.params, point.clock.mhz, 100, 100)
        assert memory.bandwidth == pytest.approx(100 / (point.clock.mhz * point.params.rows))
        program = compile_model(model, point.params, memory=memory).program
        assert point.work.cycles.total == pytest.approx(program.predicted_cycles)
        assert point.work.dram == sum(layer.dram_words for layer in program.layers)
        assert point.work.macs == program.macs


def test_a_port_transfers_at_most_a_beat_per_cycle_in_each_direction():
    assert [memory_of(preset("nano"), 100, mbs, 100).bandwidth for mbs in (None, 200, 800, 1e9)] == [1.0, 0.5, 2.0, 2.0]
    # A beat of a wide port takes the time of all its bytes, though it carries a word.
    for bits in (32, 64, 128):
        wide = preset("nano").replace(axi_data_bits=bits)
        assert memory_of(wide, 100, 200, 100).bandwidth == 200 / (100 * bits // 8)


def test_the_front_is_what_no_other_point_beats(explored):
    def beats(a, b):
        return a.objectives != b.objectives and all(x <= y for x, y in zip(a.objectives, b.objectives, strict=True))

    assert len(explored.points) == 8 and 1 < len(explored.front) < 8
    for point in explored.points:
        beaten = any(beats(other, point) for other in explored.points)
        assert beaten != (point in explored.front)
    assert [p.fps for p in explored.front] == sorted((p.fps for p in explored.front), reverse=True)


def test_models_weigh_together_and_accelerators_share_the_port(model, quantized_models, explored):
    other = quantized_models("tiny")
    both = explore([(model, 1.0), (other, 3.0)], Space(preset("nano")), budget(mhz=50))
    (alone,), (point,) = explore([(other, 1.0)], Space(preset("nano")), budget(mhz=50)).points, both.points
    first, second = point.works
    assert point.work.cycles.total == pytest.approx(first.cycles.total + 3 * second.cycles.total)
    assert second == alone.works[0] and point.fps == pytest.approx(50e6 / point.work.cycles.total)
    two = explore([(model, 1.0)], Space(preset("nano"), {"cols": [4, 8]}), budget(bandwidth=100, accelerators=2))
    singles = {point.params: point for point in explored.points}
    for pair in two.points:
        single = singles[pair.params]
        assert single.fps <= pair.fps * 1.001 and pair.fps <= 2 * single.fps
        assert pair.cells["FF"] == pytest.approx(2 * single.cells["FF"])


def test_a_budget_that_nothing_fits_shows_the_nearest_misses(model):
    done = explore([(model, 1.0)], SPACE, budget(Device("small", "ecp5", {"LUT": 900.0}), fps=1e6))
    assert not done.front and len(done.misses) == 5
    nearest = ", ".join(misses_of(done.misses[0]))
    assert "of 1e+06 frames/s" in nearest and "LUT" in nearest and "of 900 (+" in nearest


def test_points_for_which_a_model_does_not_compile_are_listed_with_the_reason(model):
    tall = changed(preset("nano"), {"rows": 32})
    done = explore([(model, 1.0)], Space(tall, {"weight_kib": [2, 64]}), budget())
    assert len(done.points) == 1
    (reason,) = done.refused.values()
    assert "weight_kib" in reason and "c2f" in reason
    with pytest.raises(ParameterError, match="no point of the space compiles; for example .*weight_kib"):
        explore([(model, 1.0)], Space(tall, {"weight_kib": [2]}), budget())


def test_a_fault_of_the_compiler_at_one_point_does_not_end_the_others(tmp_path, model, monkeypatch):
    def compile_graph(graph, params, **options):
        return {}[params.cols] if params.cols == 8 else real(graph, params, **options)

    real = points.compile_graph
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path))
    monkeypatch.setattr(points, "compile_graph", compile_graph)
    done = explore([(model, 1.0)], Space(preset("nano"), {"cols": [4, 8]}), budget())
    assert len(done.points) == 1
    assert [*done.refused.values()] == ["internal error: KeyError: 8; please report it"]


def test_advice_is_what_the_changed_accelerator_does(explored):
    told = 0
    for point in explored.front:
        for change in explored.advice[point.params]:
            name, _, value = change.name.partition(" ")
            assert change.new == changed(point.params, {name: int(value)})
            told += change.name in explored.why(point)
    assert told


def test_a_change_that_exceeds_the_device_comes_last_and_says_by_how_much(model):
    space = Space(preset("nano"))
    (small,) = explore([(model, 1.0)], space, budget(bandwidth=20)).points
    full = Device("full", "ecp5", {**small.cells, "RAM": 1000.0})
    done = explore([(model, 1.0)], space, budget(full, bandwidth=20))
    (point,) = done.front
    missed = {change.name: change.misses for change in done.advice[point.params]}
    assert missed["scratch_kib 64"] == "" and "DSP" in missed["rows 8"] and "(+" in missed["rows 8"]
    fitting, exceeding = done.why(point).split("; ")[-2:]
    assert "scratch_kib 64: " in fitting and f"but does not fit: {missed['rows 8']}" in exceeding


def test_the_largest_part_of_the_cycles_is_named_first():
    cycles = Cycles(array=60, partial=1, memory=30, start=9)
    text = explain(cycles)
    assert text.startswith("60% of the cycles go to the array, with useful products")
    assert "30.0%, to the memory port" in text
    assert list(changes_of(preset("nano"), cycles)) == ["rows 8", "cols 8", "scratch_kib 64"]


def test_a_clock_is_that_of_the_nearest_routed_design():
    assert clock_of(preset("base").macs // 2) == clock_of(preset("base").macs)
    assert "measured on nano, routed on 20" in clock_of(preset("nano").macs).source  # it may be of an older design
    assert clock_of(preset("nano").macs, 42.0).mhz == 42.0


def test_cycles_are_distributed_without_a_rest(model):
    for name in ("nano", "small"):
        program = compile_model(model, preset(name)).program
        for memory in (program.memory, MemoryTiming(bandwidth=0.1, read_latency=300)):
            cycles = work_of([program], memory).cycles
            assert min(vars(cycles).values()) >= 0
        assert cycles.memory + cycles.weights > work_of([program]).cycles.memory


def test_moves_access_the_words_of_their_footprints(rng):
    """Of coded weights, memory has fewer words than the weight memory."""
    maker = GraphMaker(rng.getrandbits(32))
    graph = maker.graph(maker.conv(maker.conv(maker.input(40, 5, 5), 40, 3), 64, 1, nine_bits=True))
    graph = replace(graph, nodes=tuple(replace(n, weights=n.weights >> 5) for n in graph.nodes if isinstance(n, Conv)))
    params = preset("nano").replace(word_code=True)
    program = compile_graph(graph, params)
    assert any(i.values.get("coded") for i in program.instructions)
    moved: Counter[str] = Counter()
    names = {Memory.DRAM: "dram", Memory.SCRATCH: "scratch", Memory.WEIGHT: "weights"}
    for instruction in program.instructions:
        if instruction.kind in (Kind.LOAD, Kind.STORE):
            words = Counter({names[a.memory]: addresses(a).size for a in footprint(instruction, params)})
            assert Counter(_accesses(instruction, params)) == words
            moved += words
    assert work_of([program]).dram == moved["dram"] < moved["scratch"] + moved["weights"]


def test_the_array_waits_for_what_a_layer_has_most_of():
    """On a slow memory: weights of a layer with one pixel, activations of one with few channels."""
    memory = MemoryTiming(bandwidth=0.25)
    for channels, size, most in ((512, 1, "weights"), (8, 40, "memory")):
        maker = GraphMaker(3)
        graph = maker.graph(maker.conv(maker.input(channels, size, size), channels, 1))
        cycles = vars(work_of([compile_graph(graph, preset("nano"), memory=memory)]).cycles)
        assert max(cycles, key=cycles.__getitem__) == most
        assert cycles["weights" if most == "memory" else "memory"] < cycles[most] / 4


@pytest.mark.parametrize("last", ["weights", "memory"])
def test_the_array_waits_for_the_load_that_ends_last(last):
    """The first load is short, the second one long."""
    maker = GraphMaker(3)
    program = compile_graph(maker.graph(maker.conv(maker.input(4, 4, 4), 4, 1)), preset("nano"))
    sizes = {0: 20, 1: 20} | {int(last == "weights"): 400}
    loads = [make(Kind.LOAD, target=t, n0=n) for t, n in sorted(sizes.items(), key=lambda item: item[1])]
    code = (
        program.instructions[0],
        *loads,
        make(Kind.CONV, wait_load=2),
        make(Kind.STORE, wait_mac=1, n0=1),
        make(Kind.END, wait_store=1),
    )
    origin = tuple(Provenance(layer=0, tile=0) for _ in code)
    cycles = vars(work_of([replace(program, instructions=code, provenance=origin)]).cycles)
    assert cycles[last] > 300 > cycles["memory" if last == "weights" else "weights"]


def test_a_softmax_reads_its_words_in_each_pass():
    params = preset("nano").replace(vector_softmax=True)
    made = make(Kind.VSOFTMAX, out_h=3, out_w=5, blocks=7)
    assert _accesses(made, params) == {"scratch": (PASSES + 1) * 3 * 5 * 7}


def test_a_space_has_each_valid_point_once(tmp_path):
    (file := tmp_path / "s.toml").write_text('preset = "base"\nrows = [4, 8]\nlanes = [4, 8]\nvector_lanes = 4\n')
    valid, refused = read_space(file).points()
    assert len(valid) == 3
    assert [*refused] == ["vector_lanes = 4, rows = 4, lanes = 8"]
    assert "nearest valid value" in refused["vector_lanes = 4, rows = 4, lanes = 8"]
    file.write_text("rows = [4, 8, 16, 32]\ncols = [4, 8, 16, 32, 64]\nsample = 7\nseed = 3\n")
    first, _ = read_space(file).points()
    assert first == read_space(file).points()[0] and len(first) == 7


def test_fields_of_fpgas_follow_the_device_unless_the_space_names_them():
    wide = device_space(Space(preset("base")), "xc7").base
    assert (wide.multiplier_bits, wide.lut_products) == (25, 0)
    named = device_space(Space(preset("base"), {"multiplier_bits": [18]}), "xc7")
    assert named.points()[0][0].multiplier_bits == 18
    assert device_space(Space(preset("base")), "ecp5").base == preset("base")
    given = device_space(read_space(None, preset("base"), frozenset({"lut_products"})), "xc7").base
    assert (given.multiplier_bits, given.lut_products) == (25, preset("base").lut_products)


def test_functions_that_no_model_uses_are_left_out_unless_they_are_named(model, quantized_models):
    space = Space(preset("base"), {"scratch_kib": [64, 128]})
    done = explore([(model, 1.0)], space, budget())
    assert done.unused == ("vector_softmax", "vector_norm", "vector_depthwise", "weight_sums")
    assert all(not getattr(point.params, name) for point in done.points for name in done.unused)
    for kept in (replace(space, named=frozenset({"vector_norm"})), Space(preset("base"), {"vector_norm": [True]})):
        named = explore([(model, 1.0)], kept, budget())
        assert "vector_norm" not in named.unused and named.points[-1].params.vector_norm
        assert total(named.points[0].area)["LUT"] > total(done.points[0].area)["LUT"]
    # Of several models, one that uses a function is enough.
    uses = [(quantized_models("mobilenet_v2", 32), 1.0), (quantized_models("c2psa", 64), 1.0)]
    assert explore([(model, 1.0), *uses], Space(preset("base")), budget()).unused == ("vector_norm",)


def test_a_model_is_read_once_and_folded_once_for_equal_options(model, monkeypatch):
    calls = []
    for name in ("load_model", "fold_for"):
        real = getattr(points, name)
        monkeypatch.setattr(points, name, lambda *a, name=name, real=real, **k: calls.append(name) or real(*a, **k))
    # No function that folding asks for can be left out.
    explore([(model, 1.0)], Space(preset("nano").replace(weight_sums=False)), budget())
    assert calls == ["load_model", "fold_for"]


def test_a_space_that_leaves_functions_out_has_the_cycles_of_one_that_has_them(model):
    all_of_base = frozenset(preset("base").to_dict())
    spaces = (Space(preset("base")), Space(preset("base"), named=all_of_base))
    (less,), (full,) = (explore([(model, 1.0)], space, budget()).points for space in spaces)
    assert less.params != full.params == preset("base") and less.work == full.work


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("row = [4]", 5, "unknown hardware parameter 'row': did you mean rows?"),
        ("rows = [12]", 5, "no point of the space is valid; for example rows = 12: rows must be a power of two"),
        ("rows = []", 5, "rows must have at least one value"),
        ("rows = [[4]]", 5, "rows must be an integer"),
        ("preset = 3", 5, "preset must be the name of one preset"),
        ("sample = -1", 5, "sample must be a whole number of at least 1, not -1"),
        ("rows = [", 3, "must be a TOML file"),
        (f"rows = {[4] * 200}\ncols = {[4] * 200}", 5, "40,000 points, of at most 10,000"),
    ],
)
def test_a_bad_space_is_one_line(tmp_path, model, capsys, text, code, said):
    (tmp_path / "space.toml").write_text(text)
    assert main(["explore", str(model), "--space", str(tmp_path / "space.toml"), "-o", str(tmp_path / "o")]) == code
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


@pytest.mark.usefixtures("verilog_from_cache")
def test_the_command_writes_page_tables_and_parameters_and_verifies_in_rtl(tmp_path, model, capsys):
    (tmp_path / "space.toml").write_text('preset = "nano"\nscratch_kib = [16, 32]\n')
    words = ["explore", str(model), "--space", str(tmp_path / "space.toml"), "-o", str(tmp_path / "out"), "--json"]
    assert main([*words, "--verify", "1", "--bandwidth", "200"]) == 0
    record = json.loads(capsys.readouterr().out)
    (verified,) = record["verified"]
    assert verified["equal"] and verified["compared_bytes"] > 0 and abs(verified["error"]) < 0.03
    assert verified["predicted"] == record["points"][0]["cycles"]
    folder = tmp_path / "out"
    assert main(["verilog", "--config", str(folder / "point1.toml"), "-o", str(tmp_path / "rtl"), "-q"]) == 0
    assert (folder / "points.csv").read_text().count("\n") == 1 + len(record["points"])
    assert "<svg" in (folder / "explore.html").read_text()
    assert main([*words, "--fps", "1e9"]) == 5
    # What was explored is there although the RTL cannot simulate so slow a memory.
    assert main([*words, "--verify", "1", "--bandwidth", "0.01", "-o", str(tmp_path / "slow")]) == 2
    assert len(json.loads((tmp_path / "slow/points.json").read_text())["points"]) == 2


def test_an_interrupted_exploration_resumes_and_a_killed_worker_loses_nothing(model, explored, tmp_path, monkeypatch):
    def disturb(at, action):
        return lambda stage, done, _all: action() if (stage, done) == ("forecast", at) else None

    def kill_worker():
        killed.append(multiprocessing.active_children()[-1])
        os.kill(killed[0].pid, signal.SIGKILL)  # as for want of memory; the others go on

    def kept():
        return {path: path.stat().st_mtime_ns for path in tmp_path.glob("forecasts/*/work.json")}

    killed = []
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path))
    # A test run in the background of a shell inherits that SIGINT is ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            exploration(model, Processes(2), disturb(2, lambda: signal.raise_signal(signal.SIGINT)))
    finally:
        signal.signal(signal.SIGINT, handler)
    begun = kept()
    assert 2 <= len(begun) < len(explored.points) and not multiprocessing.active_children()
    assert exploration(model, Processes(2), disturb(3, kill_worker)).to_dict() == explored.to_dict()
    assert killed[0].exitcode == -signal.SIGKILL
    done = kept()
    assert begun.items() <= done.items() and len(done) >= len(explored.points)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        assert exploration(model, Processes(dask=cluster.scheduler_address)).to_dict() == explored.to_dict()
    assert kept() == done


ONE_POINT = """
import gc, sys
from pathlib import Path
from intloom.compiler.ir import Conv
from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.program import MemoryTiming
from intloom.compiler.schedule import compile_graph
from intloom.exploration import points
from intloom.hw.spec.params import preset
from intloom.sim.processes import Processes
from intloom.sim.regress.graphs import GraphMaker

network = points.read_network(Path(sys.argv[1]), 1.0, [preset("nano")], {})
gc.collect()
(_,) = points.pooled([network]).results([points.Task(preset("nano"), MemoryTiming())], Processes())
print(gc.collect())
"""


def test_a_point_leaves_nothing_in_memory(model, monkeypatch, tmp_path):
    """In a process of its own: threads of other tests, as those of Dask, leave cycles at any time."""
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", ONE_POINT, str(model)], capture_output=True, text=True, check=True)
    # A compilation leaves thousands of objects in reference cycles.
    assert int(done.stdout) < 100


def test_a_run_estimates_its_energy_as_the_exploration_does(model, programs, capsys):
    program, (point,) = programs("c2f"), explore([(model, 1.0)], Space(preset("nano")), budget()).points
    assert main(["run", str(program), "--technology", "45nm", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    spent, counted = record["energy"]["microjoules"], record["dram_bytes"] / point.params.word_bytes
    expected = energy(replace(point.work, dram=counted), point.params, choose_technology("45nm"))
    assert spent == pytest.approx(expected)
    # The port also fetches instructions, which the forecast does not count as traffic of the layers.
    assert point.work.dram < counted
    assert main(["run", str(program), "--backend", "isa", "--technology", "45nm"]) == 0
    assert "µJ, estimated" in capsys.readouterr().err
    assert main(["run", str(program), "--technology", "none"]) == 2


def test_advice_compiles_fewer_changes_of_a_longer_program(model, monkeypatch):
    bundle = compile_model(model, preset("nano"))
    length = len(bundle.program.instructions)
    changes = [*changes_of(preset("nano"), work_of(bundle.programs).cycles).values()]
    tried = []

    def task(params, memory):
        tried.append(params)
        return points.Task(params, memory)

    monkeypatch.setattr(advice, "Task", task)
    for most, count in ((length - 1, 0), (length, 1), (100 * length, len(changes))):
        monkeypatch.setattr(advice, "_MOST_INSTRUCTIONS", most)
        tried.clear()
        assert "% of the cycles go to" in advice.advise(bundle, MemoryTiming())
        assert tried == changes[len(changes) - count :]


@pytest.mark.slow
def test_the_report_of_a_run_opens_with_what_limits_it(rtl_run, tmp_path):
    folder = shutil.copytree(rtl_run, tmp_path / "run")
    record = json.loads((folder / "run.json").read_text())
    why = record["why"]
    assert "% of the cycles go to the array" in why and "rows 8: -" in why
    assert main(["report", str(folder), "-q"]) == 0
    text = (folder / "report.html").read_text()
    assert 0 < text.index("By the forecast, ") < text.index("Cycles of each unit")


def test_the_python_interface_gives_rows_for_a_table(model):
    done = intloom.explore(model, {"preset": "nano", "cols": [4, 8]}, device="LFE5U-25F", bandwidth=100)
    rows = done.rows()
    assert [row["front"] for row in rows] == sorted((row["front"] for row in rows), reverse=True)
    assert {len(row) for row in rows} == {len(rows[0])} and done._repr_html_().count("<tr>") == 1 + len(done.front)
    with pytest.raises(intloom.UsageError, match="explore has no option 'speed'"):
        intloom.explore(model, speed=3)
