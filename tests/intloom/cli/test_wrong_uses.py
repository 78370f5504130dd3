"""Wrong uses of the command line: each gives one clear line, the right exit code, and leaves nothing behind."""

import subprocess
import sys

import numpy as np
import onnx
import pytest

from intloom.cli import main
from intloom.common.errors import ExitCode

Q, LOOM = "{q}", "{loom}"
WRONG = [
    # words of the command line, exit code, what the line must name
    (["frobnicate"], ExitCode.USAGE, "frobnicate"),
    (["zoo"], ExitCode.USAGE, "--help"),
    (["zoo", "build"], ExitCode.USAGE, "NAME"),
    (["zoo", "build", "yolov9"], ExitCode.USAGE, "yolov8n"),
    (["zoo", "build", "yolov8n", "--imgsz", "100"], ExitCode.USAGE, "multiple of 32"),
    (["zoo", "build", "tiny", "--seed", "-1"], ExitCode.USAGE, "seed"),
    (["zoo", "build", "tiny", "--imgsz", "big"], ExitCode.USAGE, "integer"),
    (["zoo", "build", "tiny", "-o", "{dir}"], ExitCode.USAGE, "folder"),
    (["zoo", "build", "tiny", "-o", "{text}/under/a/file.onnx"], ExitCode.DISK, "file.onnx"),
    (["preprocess", "missing.onnx"], ExitCode.BAD_FILE, "missing.onnx"),
    (["preprocess", "{text}"], ExitCode.BAD_FILE, "must be an ONNX model"),
    (["preprocess", "{float}", "--optimizer", "magic"], ExitCode.USAGE, "magic"),
    (["quantize", "{float}"], ExitCode.USAGE, "--output"),
    (["quantize", "{float}", "-o", "o.onnx", "--calibration", "nowhere"], ExitCode.BAD_FILE, "nowhere"),
    (["quantize", "{float}", "-o", "o.onnx", "--calibration", "{dir}"], ExitCode.BAD_FILE, "images"),
    (["quantize", "{float}", "-o", "o.onnx", "--samples", "0"], ExitCode.USAGE, "samples"),
    (["quantize", "{float}", "-o", "o.onnx", "--exclude", "nope"], ExitCode.USAGE, "nope"),
    (["quantize", Q, "-o", "o.onnx"], ExitCode.UNSUPPORTED, "already quantized"),
    (["bench", "--within", "-3"], ExitCode.USAGE, "--within"),
    (["bench", "--within", "nan"], ExitCode.USAGE, "--within"),
    (["bench", "-o", "{dir}"], ExitCode.USAGE, "folder"),
    (["demo", "--preset", "huge"], ExitCode.BAD_PARAMETERS, "huge"),
    (["demo", "-o", "{text}"], ExitCode.USAGE, "folder"),
    (["quantize", "{truncated}", "-o", "o.onnx"], ExitCode.BAD_FILE, "truncated"),
    (["inspect", "{text}"], ExitCode.BAD_FILE, "ONNX"),
    (["inspect", Q, "--dim", "height"], ExitCode.USAGE, "NAME=N"),
    (["compile", "{float}", "-o", "o.loom"], ExitCode.UNSUPPORTED, "quantized"),
    (["compile", Q, "-o", "o.loom", "--preset", "huge"], ExitCode.BAD_PARAMETERS, "huge"),
    (["compile", Q, "-o", "o.loom", "--preset", "base", "--config", "{toml}"], ExitCode.USAGE, "exclude each other"),
    (["compile", Q, "-o", "o.loom", "--config", "{toml}"], ExitCode.BAD_PARAMETERS, "strip"),
    (["compile", Q, "-o", "o.loom", "--config", "{text}"], ExitCode.BAD_FILE, "TOML"),
    (["compile", Q, "-o", "o.loom", "--match", "nearly"], ExitCode.USAGE, "nearly"),
    (["disasm", Q], ExitCode.BAD_FILE, "program"),
    (["disasm", "{cut}"], ExitCode.BAD_FILE, "truncated"),
    (["disasm", "{flipped}"], ExitCode.BAD_FILE, "altered"),
    (["asm", "{text}", "-o", "o.bin"], ExitCode.BAD_PARAMETERS, "text:1"),
    (["asm", "{empty}", "-o", "o.bin"], ExitCode.BAD_FILE, "none"),
    (["asm", "{asm}", "-o", "o.loom"], ExitCode.USAGE, "--into"),
    (["asm", "{racy}", "--into", LOOM, "-o", "o.loom"], ExitCode.SIMULATION, "instruction"),
    (["run", LOOM, "--backend", "fpga"], ExitCode.USAGE, "fpga"),
    (["run", LOOM, "--backend", "golden", "--input", "nothing.npy"], ExitCode.BAD_FILE, "nothing.npy"),
    (["run", LOOM, "--backend", "golden", "--input", "{npy}"], ExitCode.USAGE, "shape"),
    (["run", LOOM, "--backend", "golden", "--input", "other={npy}"], ExitCode.USAGE, "other"),
    (["run", LOOM, "--backend", "golden", "--model", "{otherq}"], ExitCode.BAD_FILE, "compiled from"),
    (["run", "{lonely}", "--backend", "isa", "--check"], ExitCode.USAGE, "--model"),
    (["run", LOOM, "--backend", "isa", "-o", "{text}"], ExitCode.USAGE, "is a file"),
    (["run", LOOM, "--backend", "rtl", "--stalls", "1000"], ExitCode.USAGE, "stall"),
    (["run", LOOM, "--backend", "rtl", "--verilog", "none.v"], ExitCode.BAD_FILE, "none.v"),
    (["run", LOOM, "--backend", "isa", "--layers", "model.0.*"], ExitCode.USAGE, "RTL only"),
    (["run", LOOM, "--backend", "isa", "--latency", "5"], ExitCode.USAGE, "--latency needs"),
    (["run", LOOM, "--backend", "golden", "--limit", "5"], ExitCode.USAGE, "--limit needs"),
    (["run", LOOM, "--tile", "1"], ExitCode.USAGE, "--layers"),
    (["run", LOOM, "--backend", "golden", "--seed", "-1"], ExitCode.USAGE, "seed"),
    (["cache", "clear", "--kind", "everything"], ExitCode.USAGE, "everything"),
    (["report", "{dir}"], ExitCode.BAD_FILE, "run.json"),
    (["verilog", "--preset", "base"], ExitCode.USAGE, "--output"),
    (["verilog", "--preset", "tiny", "-o", "out"], ExitCode.BAD_PARAMETERS, "nano"),
    (["verilog", "--config", "missing.toml", "-o", "out"], ExitCode.BAD_FILE, "missing.toml"),
    (["regress", "everything"], ExitCode.USAGE, "everything"),
    (["regress", "smoke", "--dask", "nonsense"], ExitCode.USAGE, "nonsense"),
    (["regress", "smoke", "--dask", ""], ExitCode.USAGE, "--dask"),
    (["zoo", "build", "tiny", "-o", "/dev/null"], ExitCode.USAGE, "device"),
    (["preprocess", "{float}", "-o", "{dir}"], ExitCode.USAGE, "folder"),
    (["quantize", "{float}", "-o", "{float}"], ExitCode.USAGE, "another file"),
    (["quantize", "{float}", "-o", "{dir}"], ExitCode.USAGE, "folder"),
    (["quantize", "{float}", "-o", "o.onnx", "--samples", "1" + 20 * "0"], ExitCode.USAGE, "samples"),
    (["quantize", "{float}", "-o", "o.onnx", "--calibration", "{nan}"], ExitCode.USAGE, "finite"),
    (["inspect", Q, "--dim", "batch=1"], ExitCode.USAGE, "'batch'"),
    (["compile", Q, "-o", Q], ExitCode.USAGE, "another file"),
    (["compile", Q, "-o", "o.loom", "--map", "o.loom"], ExitCode.USAGE, "another file"),
    (["compile", Q, "-o", "o.loom", "--preset", ""], ExitCode.BAD_PARAMETERS, "preset"),
    (["disasm", LOOM, "-o", LOOM], ExitCode.USAGE, "another file"),
    (["asm", "{asm}", "-o", "{asm}"], ExitCode.USAGE, "another file"),
    (["run", LOOM, "--backend", "golden", "--input", "{nan}"], ExitCode.USAGE, "NaN"),
    (["run", LOOM, "--bandwidth", "nan"], ExitCode.USAGE, "bandwidth"),
    (["run", LOOM, "--bandwidth", "1e-9"], ExitCode.USAGE, "bandwidth"),
    (["run", LOOM, "--limit", "-5"], ExitCode.USAGE, "--limit"),
    (["run", LOOM, "--layers", "model.0.*", "-o", "out"], ExitCode.USAGE, "--layers"),
    (["run", LOOM, "--backend", "isa", "--waves", "w"], ExitCode.USAGE, "--waves"),
    (["run", LOOM, "--waves", "{text}"], ExitCode.USAGE, "is a file"),
    (["cache", "list", "--cache", "{text}"], ExitCode.USAGE, "folder"),
]


@pytest.fixture(scope="module")
def things(tmp_path_factory, float_models, quantized_models):
    """Files, right and wrong, by the words that stand for them."""
    folder = tmp_path_factory.mktemp("things")
    quantized = quantized_models("tiny")
    loom = folder / "tiny.loom"
    assert main(["compile", str(quantized), "--preset", "nano", "-o", str(loom), "-q"]) == 0
    program, float_model = loom.read_bytes(), float_models("tiny").read_bytes()
    listing = folder / "tiny.s"
    assert main(["disasm", str(loom), "-o", str(listing)]) == 0
    made = {
        "text": b"once upon a time\n",
        "empty": b"# nothing\n",
        "truncated": float_model[: len(float_model) // 2],
        "cut": program[:-100],
        "flipped": program[:-1] + bytes([program[-1] ^ 1]),
        "lonely": program,
        "toml": b'preset = "base"\nstrip = 8\n',
        "racy": "".join(w + "\n" for w in without_waits(listing.read_text())).encode(),
    }
    for name, content in made.items():
        (folder / name).write_bytes(content)
    np.save(folder / "wrong.npy", np.zeros((1, 2, 3), np.float32))
    np.save(folder / "nan.npy", np.full((1, 3, 16, 16), np.nan, np.float32))
    (folder / "dir").mkdir()
    paths = {name: folder / name for name in (*made, "dir")}
    return {
        **paths,
        "npy": folder / "wrong.npy",
        "nan": folder / "nan.npy",
        "asm": listing,
        "loom": loom,
        "q": quantized,
        "float": float_models("tiny"),
        "otherq": quantized_models("c2f"),
    }


def without_waits(text):
    for line in text.splitlines():
        yield " ".join(w for w in line.split("#")[0].split() if not w.startswith("wait_"))


@pytest.mark.parametrize(("words", "code", "named"), WRONG, ids=lambda v: " ".join(v) if isinstance(v, list) else None)
def test_one_line_and_the_right_code(words, code, named, things, tmp_path, monkeypatch, capsys, cache_folder):
    monkeypatch.chdir(tmp_path)
    before = {p: p.read_bytes() for p in things["loom"].parent.iterdir() if p.is_file()}
    assert main([w.format(**things) for w in words]) == code
    lines = capsys.readouterr().err.strip().splitlines()
    said = [line for line in lines if line.startswith("intloom: ")]
    assert len(said) == 1, lines
    assert named in said[0]
    assert "Traceback" not in "".join(lines)
    left = [p for p in tmp_path.rglob("*") if p.is_file() and cache_folder not in p.parents]
    assert not left
    assert before == {p: p.read_bytes() for p in things["loom"].parent.iterdir() if p.is_file()}


def test_there_are_at_least_thirty():
    assert len(WRONG) >= 30


def test_a_reader_that_goes_away_is_no_error(things):
    command = f"{sys.executable} -m intloom disasm {things['loom']} | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("BEGIN")
    assert done.stderr == ""


def test_errors_of_our_own_are_told_apart(monkeypatch, capsys):
    monkeypatch.setattr("intloom.zoo.catalog.Builder", None)
    assert main(["zoo", "build", "tiny"]) == ExitCode.INTERNAL
    assert "internal error" in capsys.readouterr().err


def test_an_unquantized_model_is_refused_by_name(tmp_path, float_models, capsys):
    model = onnx.load(float_models("tiny"))
    model.graph.node[0].op_type = "Frobnicate"
    onnx.save(model, tmp_path / "odd.onnx")
    assert main(["inspect", str(tmp_path / "odd.onnx")]) in (ExitCode.BAD_FILE, ExitCode.UNSUPPORTED)
    assert "Frobnicate" in capsys.readouterr().err
