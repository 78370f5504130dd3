"""Wrong uses of the command line: each gives one clear line, the right exit code, and leaves nothing behind."""

import numpy as np
import onnx
import pytest
from PIL import Image

from intloom.cli import main
from intloom.common.errors import ExitCode

Q, LOOM = "{q}", "{loom}"
PHOTOS = ("--data", "{photos}", "--task", "detect", "-o", "{out}")
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
    (["quantize", Q, "-o", "o.onnx"], ExitCode.USAGE, "already quantized"),
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
    (["report", "{dir}"], ExitCode.BAD_FILE, "intloom run -o wrote, but has no run.json"),
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
    (["run", LOOM, "--backend", "isa", "--waves", "w"], ExitCode.USAGE, "--waves"),
    (["run", LOOM, "--waves", "{text}"], ExitCode.USAGE, "is a file"),
    (["run", LOOM, "--waves", "w", "--layers", "*", "--from-layer", "a"], ExitCode.USAGE, "remove --from-layer"),
    (["run", LOOM, "--waves", "w", "--cycles", "5"], ExitCode.USAGE, "FIRST:LAST"),
    (["run", LOOM, "--cycles", "1:2"], ExitCode.USAGE, "add --waves DIR"),
    (["run", LOOM, "--from-layer", "a"], ExitCode.USAGE, "add --waves DIR"),
    (["run", LOOM, "--jobs", "2", "--backend", "isa"], ExitCode.USAGE, "--jobs runs in RTL only"),
    (["run", LOOM, "--jobs", "2", "--stalls", "5"], ExitCode.USAGE, "without --stalls"),
    (["run", LOOM, "--dask", "tcp://localhost:8786"], ExitCode.USAGE, "add --jobs 2 or more"),
    (["run", LOOM, "--frames", "{dir}", "-i", "x.npy"], ExitCode.USAGE, "--input is for a single run"),
    (["run", LOOM, "--frames", "{dir}", "--layers", "*"], ExitCode.USAGE, "--layers is for a single run"),
    (["run", LOOM, "--frames", "{dir}"], ExitCode.USAGE, "but holds none"),
    (["run", LOOM, "--frames", "missing"], ExitCode.USAGE, "must be a folder"),
    (["run", LOOM, "--input", "{two}"], ExitCode.USAGE, "rename or remove it"),
    (["run", LOOM, "--input", "images={two}"], ExitCode.USAGE, "must hold one array"),
    (["cache", "list", "--cache", "{text}"], ExitCode.USAGE, "folder"),
    (["--versions"], ExitCode.USAGE, "--versions"),
    (["version", "extra"], ExitCode.USAGE, "extra"),
    (["doctor", "--json=yes"], ExitCode.USAGE, "--json"),
    (["zoo", "list", "extra"], ExitCode.USAGE, "extra"),
    (["zoo", "build", "tiny", "--imgsz", "0"], ExitCode.USAGE, "multiple"),
    (["zoo", "build", "tiny", "--imgsz", "-16"], ExitCode.USAGE, "multiple"),
    (["zoo", "build", ""], ExitCode.USAGE, "yolov8n"),
    (["preprocess", Q, "-o", Q], ExitCode.USAGE, "another file"),
    (["preprocess", "{dir}"], ExitCode.BAD_FILE, "cannot read model"),
    (["preprocess", "{float}", "--dim", "batch=0"], ExitCode.USAGE, "NAME=N"),
    (["quantize", "{float}", "-o", "o.onnx", "--percentile", "99"], ExitCode.USAGE, "percentile"),
    (["quantize", "{float}", "-o", "o.onnx", "--form", "int4"], ExitCode.USAGE, "int4"),
    (["quantize", "{float}", "-o", "o.onnx", "--seed", "-1"], ExitCode.USAGE, "seed"),
    (["quantize", "{float}", "-o", "o.onnx", "--calibration", "{text}"], ExitCode.BAD_FILE, "calibration"),
    (["quantize", "{float}", "-o", "o.onnx", "--calibration", "{npy}"], ExitCode.USAGE, "shape"),
    (["quantize", LOOM, "-o", "o.onnx"], ExitCode.BAD_FILE, "ONNX"),
    (["inspect", LOOM], ExitCode.BAD_FILE, "intloom run"),
    (["inspect", "{float}"], ExitCode.UNSUPPORTED, "intloom quantize"),
    (["inspect", Q, "--dump-after", "nothing"], ExitCode.USAGE, "nothing"),
    (["inspect", Q, "--dim", "=3"], ExitCode.USAGE, "NAME=N"),
    (["compile", LOOM, "-o", "o.loom"], ExitCode.BAD_FILE, "ONNX"),
    (["compile", Q, "-o", "{dir}"], ExitCode.USAGE, "folder"),
    (["compile", Q, "-o", "o.loom", "--config", "{dir}"], ExitCode.BAD_FILE, "hardware parameters"),
    (["compile", Q, "-o", "o.loom", "--config", "{part}"], ExitCode.BAD_PARAMETERS, "preset = one of"),
    (["compile", Q, "-o", "o.loom", "--config", "{odd}"], ExitCode.BAD_PARAMETERS, "unknown hardware parameter"),
    (["compile", Q, "-o", "o.loom", "--config", "{base}"], ExitCode.BAD_PARAMETERS, "'enormous'"),
    (["compile", Q, "-o", "o.loom", "--map", Q], ExitCode.USAGE, "another file"),
    (["compile", Q, "-o", "{text}/o.loom"], ExitCode.DISK, "o.loom"),
    (["compile", Q, "-o", "o.loom", "--bandwidth", "1e-300"], ExitCode.USAGE, "bandwidth must be 0, or from 0.001 to"),
    (["compile", Q, "-o", "o.loom", "--bandwidth", "inf"], ExitCode.USAGE, "bandwidth must be 0, or from 0.001 to"),
    (["compile", Q, "-o", "o.loom", "--bandwidth", "nan"], ExitCode.USAGE, "bandwidth"),
    (["export", LOOM], ExitCode.USAGE, "--c"),
    (["export", LOOM, "--c", "{text}"], ExitCode.USAGE, "folder"),
    (["export", LOOM, "--bin", LOOM], ExitCode.USAGE, "another file"),
    (["export", Q, "--bin", "o.bin"], ExitCode.BAD_FILE, "program"),
    (["disasm", "{empty}"], ExitCode.BAD_FILE, "program"),
    (["asm", "{asm}", "--into", Q, "-o", "o.loom"], ExitCode.BAD_FILE, "program"),
    (["run", Q, "--backend", "golden"], ExitCode.BAD_FILE, "intloom compile"),
    (["run", LOOM, "--waves", "w", "--from-layer", "nothing"], ExitCode.USAGE, "one of the layers"),
    (["run", LOOM, "--match-original", "--backend", "golden"], ExitCode.USAGE, "--check"),
    (["run", LOOM, "--backend", "golden", "-i", "{npy}", "-i", "{npy}"], ExitCode.USAGE, "given twice"),
    (["run", LOOM, "--backend", "golden", "--input", "{text}"], ExitCode.USAGE, ".npy"),
    (["run", LOOM, "--backend", "golden", "--dim", "batch=2"], ExitCode.USAGE, "batch"),
    (["run", LOOM, "--jobs", "0"], ExitCode.USAGE, "jobs must be from 1 to 256, not 0"),
    (["run", LOOM, "--jobs", "257"], ExitCode.USAGE, "jobs must be from 1 to 256, not 257"),
    (["run", LOOM, "--backend", "golden", "-o", "{text}/run"], ExitCode.DISK, "run"),
    (["report", "{text}"], ExitCode.BAD_FILE, "run"),
    (["verilog", "--preset", "nano", "-o", "{text}"], ExitCode.USAGE, "folder"),
    (["verilog", "--preset", "nano", "-o", "{text}/rtl"], ExitCode.DISK, "rtl"),
    (["regress", "smoke", "--jobs", "0"], ExitCode.USAGE, "jobs must be from 1 to 256, not 0"),
    (["explore", Q, "--jobs", "257"], ExitCode.USAGE, "jobs must be from 1 to 256, not 257"),
    (["explore", Q, "--device", "XC9"], ExitCode.USAGE, "--device must be one of LFE5U-25F"),
    (["explore", Q, "--fps", "0"], ExitCode.USAGE, "fps must be a number from 1e-09 to 1e+09, not 0"),
    (["explore", Q, "--bandwidth", "1e-320"], ExitCode.USAGE, "bandwidth must be a number from 1e-09 to 1e+09"),
    (["explore", Q, "--clock", "nan"], ExitCode.USAGE, "clock must be a number from 1e-09"),
    (["explore", Q, "--technology", "3nm"], ExitCode.USAGE, "--technology must be one of 45nm, 7nm"),
    (["explore", Q, "--weight", "1", "--weight", "2"], ExitCode.USAGE, "--weight must be given once for each of the 1"),
    (["explore", Q, "--latency", "1" + 20 * "0"], ExitCode.USAGE, "read_latency must be from 0 to 1,000,000 cycles"),
    (["regress", "smoke", "--case", "nothing*"], ExitCode.USAGE, "nothing*"),
    (["regress", "smoke", "-o", "{text}"], ExitCode.USAGE, "folder"),
    (["regress", "smoke", "--seeds", "3:4"], ExitCode.USAGE, "--seeds needs suite"),
    (["regress", "random", "--seeds", "4:3"], ExitCode.USAGE, "--seeds must be FIRST:LAST"),
    (["regress", "random", "--seeds", "3:4", "--case", "none*"], ExitCode.USAGE, "no case matches 'none*'"),
    (["bench", "--preset", "huge"], ExitCode.BAD_PARAMETERS, "huge"),
    (["bench", "--network", "yolov8n"], ExitCode.USAGE, "network must be NAME@SIZE such as yolov8n@320, not 'yolov8n'"),
    (["bench", "--baseline", "none.v"], ExitCode.USAGE, "Verilog file or a folder of tools.baseline: none.v"),
    (["demo", "--model", "yolov9"], ExitCode.USAGE, "yolov8n"),
    (["demo", "-o", "{text}/out"], ExitCode.DISK, "out"),
    (["evaluate", Q, "--task", "detect"], ExitCode.USAGE, "--data"),
    (["evaluate", Q, "--data", "{dir}"], ExitCode.USAGE, "--task"),
    (["evaluate", Q, "--data", "{dir}", "--task", "track"], ExitCode.USAGE, "track"),
    (["evaluate", Q, "--data", "{text}", "--task", "detect", "-o", "e"], ExitCode.BAD_FILE, "folder"),
    (["evaluate", Q, "--data", "{dir}", "--task", "detect", "-o", "e"], ExitCode.BAD_FILE, "annotations.json"),
    (["evaluate", Q, "--data", "{dir}", "--task", "classify", "-o", "e"], ExitCode.BAD_FILE, "images"),
    (["evaluate", Q, "--data", "{dir}", "--task", "detect", "--images", "0"], ExitCode.USAGE, "--images"),
    (["evaluate", Q, *PHOTOS, "--rtl", "0"], ExitCode.USAGE, "shape"),
    (["evaluate", "{float}", "--float", "{float}", *PHOTOS], ExitCode.USAGE, "--float"),
    (["evaluate", LOOM, "--preset", "nano", *PHOTOS], ExitCode.USAGE, "--preset"),
    (["evaluate", "{lonely}", *PHOTOS], ExitCode.USAGE, "model"),
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
        "part": b"rows = 8\ncols = 8\n",
        "odd": b'preset = "base"\ncolumns = 8\n',
        "base": b'preset = "enormous"\n',
        "toml": b'preset = "base"\nstrip = 8\n',
        "racy": "".join(w + "\n" for w in without_waits(listing.read_text())).encode(),
    }
    for name, content in made.items():
        (folder / name).write_bytes(content)
    np.save(folder / "wrong.npy", np.zeros((1, 2, 3), np.float32))
    np.save(folder / "nan.npy", np.full((1, 3, 16, 16), np.nan, np.float32))
    np.savez(folder / "two.npz", a=np.zeros(1), b=np.zeros(1))
    (folder / "dir").mkdir()
    for part in ("images", "labels"):
        (folder / "photos" / part).mkdir(parents=True)
    Image.new("RGB", (16, 16)).save(folder / "photos/images/a.png")
    (folder / "photos/labels/a.txt").write_text("0 0.5 0.5 1 1\n")
    paths = {name: folder / name for name in (*made, "dir", "photos", "out")}
    return {
        **paths,
        "npy": folder / "wrong.npy",
        "nan": folder / "nan.npy",
        "two": folder / "two.npz",
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
