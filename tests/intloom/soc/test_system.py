"""The simulated system on a chip: firmware with the C runtime, core, accelerator and memory in one simulation."""

import re
from pathlib import Path

import numpy as np
import pytest

from intloom.common.errors import EnvironmentFault, ExitCode, SimulationError
from intloom.compiler.ir import IntGraph
from intloom.compiler.program.program import Program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.result import Arrays
from intloom.soc import Check, build_firmware, run_firmware
from intloom.soc.__main__ import main
from intloom.soc.firmware import Frames, build_threads
from tests.runtime.support import small_graph

NEEDS = pytest.mark.needs("gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf")
EXPECTED = {
    "probe": "OK",
    "image": "OK",
    "load": "OK",
    "run": "OK",
    "interrupts": "1",
    "outputs": "2 of 2 equal the golden model's",
    "boxes": "0",
    "counters": "OK",
    "without cleaning": "2 of 2 outputs are wrong",
    "without invalidating": "2 of 2 outputs are wrong",
    "dead bus": "BUS",
    "unaligned window": "ALIGNMENT",
    "truncated image": "IMAGE_TRUNCATED",
    "image for other hardware": "FINGERPRINT",
    "corrupted program": "STOPPED",
    "start after an error": "HALTED",
    "bus error": "STOPPED",
    "cause": "FETCH_ERROR, instruction 0",
    "time-out": "TIMEOUT",
    "reset while running": "OK",
    "second window": "OK",
    "second load": "OK",
    "stream": "OK",
    "memory": "OK",
}
"""Last line of each name that the firmware prints."""


def checked(graph: IntGraph, inputs: Arrays, images: int = 1) -> tuple[Program, list[Check]]:
    """The program for preset nano, and images with the same bytes in different orders."""
    program, rng = compile_graph(graph, preset("nano")), np.random.default_rng(5)
    taken = [inputs, *({n: rng.permuted(a, axis=None) for n, a in inputs.items()} for _ in range(images - 1))]
    return program, [Check(image, run_graph(graph, image, match=program.params.match)) for image in taken]


@pytest.mark.slow
@NEEDS
def test_the_firmware_runs_the_program_and_survives_faults(tmp_path: Path) -> None:
    program, checks = checked(*small_graph(), images=3)
    lines: list[str] = []
    firmware = build_firmware((program,), checks, tmp_path, Frames(3, 5))
    console = run_firmware(firmware, program.params, tmp_path, say=lines.append).console
    assert lines == console.splitlines()
    values = dict(re.findall(r"^([\w -]+): (.*)$", console, re.MULTILINE))
    assert {name: values.get(name) for name in EXPECTED} == EXPECTED
    assert console.count("cause: PROGRAM_CHECK") == 1
    # The first image, then three images one by one, and all of them and two more in the stream.
    assert console.count("outputs: 2 of 2") == 1 + 3 + 5


@pytest.mark.slow
@NEEDS
def test_two_threads_share_two_accelerators(tmp_path: Path) -> None:
    maker = GraphMaker(6)
    # Small outside, for the CPU's sake, and long inside: a run lasts many times as long as a thread has the CPU.
    x = maker.conv(maker.conv(maker.input(3, 5, 5), 32, 3), 32, 3)
    program, checks = checked(maker.graph(maker.conv(x, 4, 3)), maker.random_inputs(), images=3)
    console = run_firmware(build_threads(program, checks, tmp_path), program.params, tmp_path, accelerators=2).console
    assert "with the mutex: 0 of 12 runs are wrong" in console
    (wrong,) = re.findall(r"without it: (\d+) of 12 runs are wrong", console)
    assert 0 < int(wrong) == len(re.findall(r"thread [01], run \d: \w+", console))


@pytest.mark.slow
@NEEDS
def test_the_host_works_on_one_frame_while_another_runs(tmp_path: Path) -> None:
    maker = GraphMaker(4)
    x = maker.conv(maker.conv(maker.input(3, 16, 16), 32, 3), 32, 3)
    program, checks = checked(maker.graph(maker.conv(x, 4, 3)), maker.random_inputs())
    frames, cycles = (Frames(4, 1), Frames(1, 4)), []
    for number, wanted in enumerate(frames):
        folder = tmp_path / str(number)
        result = run_firmware(build_firmware((program,), checks, folder, wanted), program.params, folder)
        assert result.console.count("outputs: 1 of 1") == 6
        cycles.append(result.cycles)
    (busy,) = re.findall(r"^  CYCLES +(\d+)$", result.console, re.MULTILINE)
    # Three frames are one by one or in the stream, where the host takes longer and hides the accelerator.
    assert cycles[0] - cycles[1] > 3 * 0.8 * int(busy)


@pytest.mark.slow
@NEEDS
def test_the_command_runs_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--network", "tiny", "--imgsz", "16", "-o", str(tmp_path)]
    assert main([*words, "nano"]) == 0
    said = capsys.readouterr().out
    assert "tiny 16x16 on nano: 1 regions" in said and "cycles in" in said
    assert main([*words, "none"]) == ExitCode.BAD_PARAMETERS
    assert "preset must be one of" in capsys.readouterr().err


@pytest.mark.slow
@NEEDS
def test_a_wrong_output_fails_the_run(tmp_path: Path) -> None:
    program, (check,) = checked(*small_graph())
    name = next(iter(check.outputs))
    wrong = {**check.outputs, name: check.outputs[name] ^ np.int8(1)}
    lines: list[str] = []
    firmware = build_firmware((program,), [Check(check.inputs, wrong)], tmp_path)
    with pytest.raises(SimulationError, match="FAILED: 1\n"):
        run_firmware(firmware, program.params, tmp_path, say=lines.append)
    assert "outputs: 1 of 2 equal the golden model's" in lines


def test_a_missing_compiler_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, checks = checked(*small_graph())
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentFault, match="apt-get install gcc-riscv64-unknown-elf picolibc"):
        build_firmware((program,), checks, tmp_path)
