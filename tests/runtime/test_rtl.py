"""The exported example and the C runtime on the RTL: the same C code that runs on a chip, in one process with it."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from intloom.cli import main
from intloom.compiler.program.device_image import device_image, plan_image
from intloom.compiler.program.file import save
from intloom.compiler.program.program import Program, Role
from intloom.flow.export import checked_image, export_c, measure_runtime
from intloom.hw.spec.isa import Unit
from intloom.sim.golden import run_graph
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.verilog import verilog_of
from tests.runtime.support import STRICT, small_graph, small_program
from tests.support.host_software import HOST_HEADERS, HostResult, run_host_software

HERE = Path(__file__).parent
GOOD_RUNS = ("polling", "interrupt", "after_time_out", "after_corruption")


def library(program: Program, folder: Path) -> Path:
    """The exported example with the test's host software."""
    export_c((program,), checked_image((program,)), folder)
    (folder / "main.c").unlink()
    sources = [str(p) for p in (*folder.glob("*.c"), HERE / "rtl_host.c")]
    flags = ["-O1", "-shared", "-fPIC", "-fsanitize=undefined", f"-I{folder}", f"-I{HOST_HEADERS}"]
    subprocess.run(["gcc", *STRICT, *flags, *sources, "-o", str(folder / "host.so")], check=True)
    return folder / "host.so"


def run(program: Program, inputs: bytes, folder: Path, hardware: Program) -> tuple[HostResult, list[str], bytes]:
    """Run host software for `program` on the hardware of another program; its result, report and outputs."""
    host = library(program, folder / "host")
    window = plan_image((program,)).window_bytes
    word = hardware.params.word_bytes
    files = RunFiles(folder)
    (folder / "inputs").write_bytes(inputs)
    np.zeros(window, np.uint8).tofile(files.memory)
    job = Job(word_bytes=word, memory_words=window // word, program_word=0, instructions=0, limit=3_000_000)
    simulator = FastBench().build(verilog_of(hardware.params))
    result = run_host_software(simulator, host, job, files)
    return result, (folder / "report").read_text().splitlines(), (folder / "outputs").read_bytes()


@pytest.mark.slow
def test_the_runtime_drives_the_rtl_and_survives_errors(tmp_path: Path) -> None:
    program, inputs = small_program()
    (given,) = inputs.values()
    result, report, outputs = run(program, given.tobytes(), tmp_path, program)
    assert result.result == 0
    assert not result.violation
    units = [i.unit for i in program.instructions]
    counted = [f"{u.name}_DONE {units.count(u)}" for u in (Unit.LOAD, Unit.MAC, Unit.STORE)]
    assert report == [
        "probe OK", "polling OK", "counters OK", *counted, "interrupt OK",
        "time_out TIMEOUT", "start_while_running BUSY", "reset_while_running OK", "after_time_out OK",
        "corrupted STOPPED", "corrupted_status OK", "cause PROGRAM_CHECK unit 4 instruction 0",
        "start_after_error HALTED", "reset OK", "after_corruption OK",
        "no_memory STOPPED", "no_memory_status OK", "cause FETCH_ERROR unit 4 instruction 0",
    ]  # fmt: skip
    golden = run_graph(small_graph()[0], inputs, match=program.params.match)
    names = [t.name for t in program.tensors if t.role is Role.OUTPUT]
    assert outputs == b"".join(golden[n].tobytes() for n in names) * len(GOOD_RUNS)


@pytest.mark.slow
def test_a_program_for_other_hardware_is_not_loaded(tmp_path: Path) -> None:
    program, inputs = small_program()
    other = replace(program, params=program.params.replace(queue_depth=2 * program.params.queue_depth))
    (given,) = inputs.values()
    _, report, outputs = run(other, given.tobytes(), tmp_path, program)
    assert report == ["probe OK", "polling FINGERPRINT"]
    assert outputs == b""


def test_export_states_sizes_and_compiles_with_the_makefile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, _ = small_program()
    save(program, tmp_path / "small.loom")
    arguments = [
        "export",
        str(tmp_path / "small.loom"),
        "--c",
        str(tmp_path / "c"),
        "--bin",
        str(tmp_path / "small.bin"),
    ]
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    image = (tmp_path / "small.bin").read_bytes()
    assert image == device_image((program,))
    assert told["image_bytes"] == len(image)
    assert told["window_bytes"] == program.memory_words * program.params.word_bytes
    assert {Path(f).name for f in told["files"]} == {*(p.name for p in (tmp_path / "c").iterdir()), "small.bin"}
    assert told["code_bytes"] == measure_runtime("cc -DNDEBUG").code and 2000 < told["code_bytes"] < 12_000
    assert told["static_bytes"] < 1000
    addresses = "-DREGISTERS_ADDRESS=0x1000u -DWINDOW_ADDRESS=0x2000u -DWINDOW_BYTES=PROGRAM_WINDOW_BYTES"
    command = ["make", f"CPPFLAGS={addresses} -include program.h", f"CFLAGS={' '.join(STRICT)} -Os"]
    subprocess.run(command, cwd=tmp_path / "c", check=True, capture_output=True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "name an output"),
        (["--bin", "x.bin", "--cc", "no-such-compiler"], 6, "no-such-compiler"),
        (["--c", "small.loom"], 2, "must be a folder"),
    ],
)
def test_wrong_exports_say_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    save(small_program()[0], Path("small.loom"))
    assert main(["export", "small.loom", *arguments]) == code
    assert message in capsys.readouterr().err
