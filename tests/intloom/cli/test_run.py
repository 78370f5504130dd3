"""`intloom run`: the record, the outputs, the comparison, and the exit code that follows from it."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from intloom.cli import main
from intloom.common.errors import EnvironmentFault, ExitCode
from intloom.compiler.reference import saturates_sums
from intloom.hw.spec.params import preset
from intloom.quantization import ActivationType
from intloom.sim.rtl.verilog import verilog_of

KEYS = {
    "backend", "cycles", "macs", "vector_macs", "mac_use", "mismatches", "compared_bytes", "sim_hz", "wall_s",
    "build_s", "dram_bytes", "layers", "original", "clock_stopped",
}  # fmt: skip


@pytest.fixture
def program(programs):
    return programs("tiny")


def run(capsys, *words):
    code = main(["run", *map(str, words), "--json", "-q"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("backend", ["golden", "isa"])
def test_the_record_has_every_promised_key(program, capsys, backend):
    code, record = run(capsys, program, "--backend", backend, "--check")
    assert code == ExitCode.OK
    assert set(record) >= KEYS
    assert record["backend"] == backend
    assert record["compared_bytes"] > 0
    assert {"name", "cycles", "mac_use", "stalls"} <= set(record["layers"][0])


@pytest.mark.parametrize("backend", ["golden", "isa"])
def test_a_backend_that_counts_no_cycles_reports_none(program, capsys, tmp_path, backend):
    record = run(capsys, program, "--backend", backend, "-o", tmp_path)[1]
    assert [record[k] for k in ("cycles", "mac_use", "sim_hz", "dram_bytes")] == [None] * 4
    assert record["layers"][0]["cycles"] is None
    with (tmp_path / "layers.csv").open() as file:
        assert next(csv.DictReader(file))["cycles"] == ""
    assert main(["run", str(program), "--backend", backend, "-v"]) == ExitCode.OK
    assert "cycles" not in capsys.readouterr().err


def test_outputs_are_saved_one_file_each(program, capsys, tmp_path):
    run(capsys, program, "--backend", "golden", "-o", tmp_path / "run")
    assert np.load(tmp_path / "run" / "output0.npy").shape == (1, 16, 16, 16)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["outputs"] == {"output0": "output0.npy"}


def test_every_kind_of_input_gives_the_same_result(program, capsys, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "x.png")
    array = (pixels.astype(np.float32) / np.float32(255)).transpose(2, 0, 1)[None]
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", images=array)
    results = []
    for number, word in enumerate(
        (tmp_path / "x.png", tmp_path / "x.npy", tmp_path / "x.npz", f"images={tmp_path / 'x.npy'}")
    ):
        folder = tmp_path / f"run{number}"
        assert run(capsys, program, "--backend", "isa", "--input", word, "--check", "-o", folder)[0] == ExitCode.OK
        results.append(np.load(folder / "output0.npy"))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_seed_chooses_the_input(program, capsys, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(capsys, program, "--backend", "golden", "--seed", seed, "-o", tmp_path / name)
    a, b, c = (np.load(tmp_path / n / "output0.npy") for n in "abc")
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_a_difference_is_exit_code_one_and_named(program, capsys, monkeypatch):
    from intloom.sim.backend import IsaBackend

    honest = IsaBackend.run

    def tampered(self, *arguments, **options):
        result = honest(self, *arguments, **options)
        next(iter(result.outputs.values()))[0, 3, 2, 1] ^= 1
        return result

    monkeypatch.setattr(IsaBackend, "run", tampered)
    assert main(["run", str(program), "--backend", "isa", "--check"]) == ExitCode.MISMATCH
    said = capsys.readouterr().err
    assert "differs" in said
    assert "[0, 3, 2, 1]" in said


@pytest.fixture
def int8_program(programs):
    """A network that onnxruntime computes in float if it runs the file itself."""
    return programs("mini_yolo", activations=ActivationType.INT8)


def test_int8_activations_have_the_bytes_of_the_integer_form(int8_program, capsys):
    for seed in range(5):
        code, record = run(capsys, int8_program, "--backend", "isa", "--check", "--seed", seed)
        assert (code, record["mismatches"]) == (ExitCode.OK, 0)
    compared = [c["layer"] for c in record["checks"] if c["against"] == "onnxruntime"]
    layers = [layer["name"] for layer in record["layers"]]
    assert len(set(compared) & set(layers)) > len(layers) // 2


def test_the_distance_of_the_file_itself_is_no_error_unless_asked_for(int8_program, capsys):
    # Which input rounds differently in float is chance; among so many, one does.
    for seed in range(60):
        code, record = run(capsys, int8_program, "--backend", "golden", "--check", "--seed", seed)
        assert code == ExitCode.OK
        distances = record["original"]["outputs"]
        if any(o["differing"] for o in distances):
            break
    assert any("Conv" in layer for layer in record["original"]["float_layers"])
    assert max(o["largest"] for o in distances) > 0
    assert record["original"]["saturated"] == saturates_sums()
    words = ("--backend", "golden", "--check", "--match-original", "--seed", seed)
    assert run(capsys, int8_program, *words)[0] == ExitCode.MISMATCH
    assert main(["run", str(int8_program), "--match-original"]) == ExitCode.USAGE


def test_one_wrong_byte_of_a_golden_layer_is_exit_code_one(int8_program, capsys, monkeypatch):
    from intloom.compiler.ir import Add

    honest = Add.evaluate

    def wrong(node, operands, context):
        result = honest(node, operands, context).copy()
        result[0, 0, 0] ^= 1
        return result

    monkeypatch.setattr(Add, "evaluate", wrong)
    code, record = run(capsys, int8_program, "--backend", "golden", "--check")
    assert code == ExitCode.MISMATCH
    assert {c["against"] for c in record["checks"] if c["mismatches"]} == {"onnxruntime"}


@pytest.fixture
def tampered(tmp_path):
    """Verilog with a bug in the array."""
    text = verilog_of(preset("nano"))
    # In the form of the array that simulators take.
    right, wrong = "pixels[0] * active[4] + pixels[1]", "pixels[0] * active[4] - pixels[1]"
    assert right in text
    (tmp_path / "npu.v").write_text(text.replace(right, wrong))
    return tmp_path / "npu.v"


@pytest.mark.slow
def test_a_bug_in_the_verilog_is_named_to_the_instruction(program, tampered, capsys):
    code, record = run(capsys, program, "--backend", "rtl", "--check", "--verilog", tampered)
    assert code == ExitCode.MISMATCH
    assert record["mismatches"] > 0
    assert "/model.0/conv/Conv" in record["divergence"]
    assert "CONV" in record["divergence"]
    first = record["first_divergence"]
    assert first["layer"] == record["layers"][first["layer_index"]]["name"] == "/model.0/conv/Conv"
    assert first["text"].startswith("CONV")
    assert f"#{first['instruction']}:" in record["divergence"]
    assert f"cycle {first['cycle']};" in record["divergence"]
    assert first["expected"] != first["got"]


@pytest.mark.slow
def test_stalls_of_the_bus_are_told_by_layer(program, capsys):
    code, record = run(capsys, program, "--backend", "rtl", "--check", "--stalls", 200)
    assert code == ExitCode.OK
    assert record["mismatches"] == 0
    assert record["compared_bytes"] > 0
    assert sum(sum(layer["stalls"].values()) for layer in record["layers"]) > 0
    assert sum(layer["cycles"] for layer in record["layers"]) == record["cycles"]


def test_a_missing_library_of_waves_is_named_before_the_run(program, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("intloom.sim.rtl.toolchain._WAVE_HEADERS", "#include <lz4_absent.h>\n")
    monkeypatch.setattr("intloom.cli.run.load_bundle", pytest.fail)
    assert main(["run", str(program), "--waves", str(tmp_path)]) == ExitCode.ENVIRONMENT
    assert "apt-get install liblz4-dev" in capsys.readouterr().err
    assert main(["doctor"]) == ExitCode.OK
    assert "liblz4-dev" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.needs("liblz4-dev")
def test_a_passing_run_leaves_the_waves_of_its_window(program, capsys, tmp_path):
    layer = run(capsys, program, "--backend", "isa")[1]["layers"][0]["name"]
    windows = {"first": [], "cycles": ["--cycles", "500:600"], "layer": ["--from-layer", layer]}
    sizes = {}
    for name, words in windows.items():
        assert main(["run", str(program), "--check", "--waves", str(tmp_path / name), *words]) == ExitCode.OK
        file = tmp_path / name / "dump.fst"
        shown = capsys.readouterr().err
        assert f": {file}" in shown
        assert f"gtkwave {file.with_name('waves.gtkw')}" in shown
        assert file.with_name("waves.gtkw").is_file()
        sizes[name] = file.stat().st_size
    assert 1000 < sizes["cycles"] < sizes["first"]
    assert main(["run", str(program), "--waves", str(tmp_path / "x"), "--from-layer", "none"]) == ExitCode.USAGE
    assert layer in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.needs("liblz4-dev")
def test_a_difference_is_kept_if_waves_fail(program, capsys, tmp_path, monkeypatch, tampered):
    def fail(*_arguments):
        raise EnvironmentFault("no simulator")

    monkeypatch.setattr("intloom.cli.run.record_waves", fail)
    words = ["--verilog", tampered, "--check", "--waves", tmp_path / "w", "-o", tmp_path / "run"]
    assert main(["run", str(program), *map(str, words)]) == ExitCode.MISMATCH
    said = capsys.readouterr().err
    assert "first divergence" in said and "no waves were recorded: no simulator" in said
    assert json.loads((tmp_path / "run/run.json").read_text())["first_divergence"]["cycle"] > 0


@pytest.mark.slow
def test_a_failed_run_leaves_no_record_of_an_earlier_one(program, capsys, tmp_path):
    assert main(["run", str(program), "--backend", "isa", "--check", "-o", str(tmp_path)]) == ExitCode.OK
    assert (tmp_path / "run.json").exists()
    assert main(["run", str(program), "--limit", "100", "-o", str(tmp_path)]) == ExitCode.SIMULATION
    assert not (tmp_path / "run.json").exists() and not (tmp_path / "timeline.json").exists()


def test_disassembly_assembles_to_the_same_bytes(program, tmp_path, capsys):
    for extra in ([], ["--plain"]):
        assert main(["disasm", str(program), "-o", str(tmp_path / "p.s"), *extra]) == 0
        assert main(["asm", str(tmp_path / "p.s"), "--into", str(program), "-o", str(tmp_path / "p.loom")]) == 0
        assert (tmp_path / "p.loom").read_bytes() == program.read_bytes()


def test_doctor_names_the_remedy_for_what_is_missing(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["doctor"]) == ExitCode.ENVIRONMENT
    said = capsys.readouterr()
    assert "apt-get install g++" in said.err
    assert "apt-get install perl" in said.out


def test_doctor_is_content_where_everything_is_there(capsys):
    assert main(["doctor", "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["ok"] is True


@pytest.mark.slow
def test_segments_at_the_same_time_give_the_record_of_one_simulation(programs, capsys):
    path = programs("c2f")
    code, one = run(capsys, path, "--check")
    assert code == ExitCode.OK
    code, two = run(capsys, path, "--check", "--jobs", 2)
    assert code == ExitCode.OK
    for key in ("cycles", "dram_bytes", "checks", "compared_bytes", "mismatches", "mac_use"):
        assert two[key] == one[key], key
    assert [k["cycles"] for k in two["layers"]] == [k["cycles"] for k in one["layers"]]


@pytest.mark.slow
def test_layers_alone_in_rtl_equal_golden_and_are_kept(programs, capsys):
    path = programs("c2f")
    code, first = run(capsys, path, "--layers", "model.1.*", "--jobs", 2)
    assert code == ExitCode.OK
    assert first["compared_bytes"] > 0
    assert first["mismatches"] == 0
    _, second = run(capsys, path, "--layers", "model.1.*")
    assert all(s["cached"] for s in second["slices"])
    assert second["cycles"] == first["cycles"]


@pytest.mark.slow
@pytest.mark.needs("liblz4-dev")
def test_layers_alone_leave_records_and_waves_and_tell_stalls(program, tmp_path, capsys):
    words = ["--layers", "model.0.*", "-o", tmp_path / "run", "--waves", tmp_path / "waves"]
    assert main(["run", str(program), *map(str, words)]) == ExitCode.OK
    text = capsys.readouterr().out
    assert all(word in text for word in ("MAC_STALL_", "utilization", "equal"))
    (folder,) = (tmp_path / "run").iterdir()
    record = json.loads((folder / "run.json").read_text())
    assert record["mismatches"] == 0 < record["compared_bytes"] and record["cycles"] > 0
    assert main(["report", str(folder)]) == ExitCode.OK
    assert (tmp_path / "waves" / folder.name / "dump.fst").stat().st_size > 1000


@pytest.mark.slow
def test_one_tile_alone_in_rtl_equals_what_the_network_makes_of_it(programs, capsys):
    path = programs("c2f")
    code, record = run(capsys, path, "--layers", "model.0.*", "--tile", 0)
    assert code == ExitCode.OK
    assert record["mismatches"] == 0
    assert all(" tile 0 #" in part["name"] for part in record["slices"])
    # The whole scratchpad is compared for every instruction.
    assert record["compared_bytes"] == len(record["slices"]) * preset("nano").scratch_kib * 1024
    assert main(["run", str(path), "--layers", "model.0.*", "--tile", "99"]) == ExitCode.USAGE
    assert "tile must be from 0 to" in capsys.readouterr().err
