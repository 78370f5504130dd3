"""What commands show to people: tables, summary lines and progress, in this process."""

import csv
import json
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from intloom.cli import main
from intloom.cli.console import open_terminal
from intloom.cli.interrupt import end_children, prompt_interrupt
from intloom.common.errors import ExitCode
from intloom.compiler.frontend import Target, fold_model
from intloom.compiler.importer import load_model
from intloom.compiler.importer.model import OnnxNode, ValueType
from intloom.compiler.partition.assignment import Assignment
from intloom.flow.host_share import host_share
from intloom.manual.__main__ import PAGES, write_pages
from tests.intloom.flow.test_regions import interrupted
from tests.support.onnx_maker import OnnxMaker

PATIENCE = 10.0


@pytest.fixture
def say(capsys, tmp_path, monkeypatch):
    """Runs a command in the test's folder; returns its exit code and all that it printed."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code = main([str(w) for w in words])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


@pytest.fixture(scope="module")
def loom(programs):
    return programs("c2f")


@pytest.mark.slow
def test_the_demo_shows_each_command_and_its_result(say, tmp_path):
    code, text = say("demo", "--model", "tiny", "--imgsz", 32, "--preset", "nano", "-o", "out")
    assert code == ExitCode.OK
    commands = [line.split()[2] for line in text.splitlines() if line.startswith("$ intloom")]
    assert commands == ["zoo", "quantize", "compile", "run", "report"]
    assert "cycles" in text and "equal" in text and (tmp_path / "out" / "run" / "report.html").exists()
    code, text = say("demo", "--model", "tiny", "--imgsz", 32, "--preset", "nano", "-o", "out", "--json", "-q")
    assert code == ExitCode.OK and json.loads(text)["mismatches"] == 0


def test_memory_of_a_network(say, quantized_models):
    words = ("inspect", quantized_models("c2f"), "--memory", "--preset", "nano")
    code, text = say(*words)
    assert code == ExitCode.OK and "tensors never leave the chip" in text
    code, all_tensors = say(*words, "-v")
    assert code == ExitCode.OK and len(all_tensors) > len(text)
    code, text = say(*words, "--json")
    told = json.loads(text)
    assert code == ExitCode.OK and told["dram_bytes"] > 0 and told["tensors"]


def test_the_graph_after_a_pass(say, quantized_models):
    code, text = say("inspect", quantized_models("tiny"), "--dump-after", "none")
    assert code == ExitCode.USAGE
    name = text.rpartition("must be one of ")[2].split(",")[0].strip()
    code, text = say("inspect", quantized_models("tiny"), "--dump-after", name)
    assert code == ExitCode.OK and "Conv" in text


@pytest.mark.slow
@pytest.mark.needs("gcc")
def test_exported_files_and_their_sizes(say, loom, tmp_path):
    code, text = say("export", loom, "--c", "c", "--bin", "n.bin", "--cc", "gcc")
    assert code == ExitCode.OK and "bytes of code" in text and "with gcc -Os" in text
    assert {"c/program.c", "n.bin"} <= set(text.split())
    assert (tmp_path / "n.bin").stat().st_size > 0
    code, text = say("export", loom, "--bin", "n.bin", "--cc", "false")
    assert code == ExitCode.ENVIRONMENT and "cannot compile the C runtime" in text


def test_a_compiled_program_tells_the_hosts_share_time_and_memory(say, quantized_models, tmp_path):
    words = ("compile", quantized_models("mini_yolo", 32), "--preset", "nano", "-o", "n.loom", "--summary", "n.csv")
    code, text = say(*words, "-v")
    assert code == ExitCode.OK and "instructions for nano" in text and "model.0" in text
    row = re.search(r"host: (\d+) of (\d+) nodes with [\d.]+ % .* ([\d.]+) ms, ([\d.]+) frames/s at ([\d.]+) MHz", text)
    host, nodes, ms, rate, mhz = (float(n) for n in row.groups())
    with (tmp_path / "n.csv").open() as file:
        (totals,) = csv.DictReader(file)
    assert (int(totals["host_nodes"]), int(totals["host_all_nodes"])) == (host, nodes) and 0 < host < nodes
    assert float(totals["milliseconds"]) == pytest.approx(int(totals["predicted_cycles"]) / mhz / 1000)
    assert ms * rate == pytest.approx(1000, rel=0.01)


def test_inspect_is_short_and_lists_every_node_on_request(say, quantized_models):
    model = quantized_models("mini_yolo", 32)
    code, text = say("inspect", model)
    assert code == ExitCode.OK and len(text.splitlines()) < 15
    assert "no QuantizeLinear follows" in text and "add a QuantizeLinear" in text
    code, every = say("inspect", model, "--all")
    assert code == ExitCode.OK and len(every.splitlines()) > 50 and "/model.0/conv/Conv" in every


def test_multiplications_of_the_host_are_counted(rng):
    maker = OnnxMaker(rng)
    folded = fold_model(load_model(interrupted(maker)))
    assert host_share(folded).macs == 0 < host_share(folded).nodes
    expected = {"Conv": 6 * 64 * 36, "ConvTranspose": 4 * 64 * 24, "MatMul": 70, "Gemm": 70, "Relu": 0, "vector": 10}
    nodes = tuple(OnnxNode(op, op.replace("vector", "MatMul"), ("a", "b"), ("c",)) for op in expected)
    shapes = {"Conv": ((1, 4, 8, 8), (6, 4, 3, 3), (1, 6, 8, 8)), "MatMul": ((2, 5), (5, 7), (2, 7))}
    shapes |= {"ConvTranspose": ((1, 4, 8, 8), (4, 6, 2, 2), (1, 6, 16, 16)), "Gemm": shapes["MatMul"]}
    shapes["vector"] = ((2, 5), (5,), (2,))
    for node in nodes:
        types = dict(zip("abc", (ValueType("float32", s) for s in shapes.get(node.name, ((1,),) * 3)), strict=True))
        model = replace(folded.model, nodes=(node,), types=types, constants={})
        alone = replace(folded, model=model, assignments=(Assignment(node.name, node.op, Target.HOST),))
        assert host_share(alone).macs == expected[node.name], node.name


@pytest.mark.slow
def test_a_regression_as_a_table(say):
    words = ("regress", "smoke", "--case", "conv-*-kernel3-stride1-*", "-o", "out")
    code, text = say(*words, "-v")
    assert code == ExitCode.OK and "pass" in text and "bytes compared" in text
    code, text = say(*words)
    assert code == ExitCode.OK and "of them passed in an earlier run" in text
    code, text = say(*words, "--json")
    told = json.loads(text)
    assert code == ExitCode.OK and told["resumed"] == len(told["results"]) > 0


def test_progress_has_a_bar_for_each_stage(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with open_terminal(0).progress() as tell:
        for stage, last in (("build", 2_000_000), ("cycles", 3000), ("report", 1)):
            for done in (0, last // 4, last // 2, last - 1):
                tell(stage, done, last)
                time.sleep(0.15)
    said = capsys.readouterr().err
    assert re.search(r"build .*1999999/2000000.* \d+\.\d M/s", said)
    assert re.search(r"cycles .*2999/3000.* \d+\.\d k/s", said)


def test_an_interrupt_of_this_process_is_received():
    with prompt_interrupt() as interruption:
        assert not interruption.received
        with pytest.raises(KeyboardInterrupt):
            subprocess.run(["sh", "-c", "kill -INT $PPID; sleep 10"], check=False)
        assert interruption.received


@pytest.mark.slow
def test_children_that_do_not_react_are_killed():
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    deaf = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    usual = subprocess.Popen(["sleep", "60"])
    assert deaf.stdout.readline() == "ready\n"
    started = time.monotonic()
    end_children()
    assert (deaf.wait(PATIENCE), usual.wait(PATIENCE)) == (-9, -15)
    assert time.monotonic() - started < PATIENCE
    deaf.stdout.close()


def test_the_manual_is_written(tmp_path):
    pages = write_pages(tmp_path)
    assert {p.relative_to(tmp_path).as_posix() for p in pages} == set(PAGES)
    assert all(p.stat().st_size for p in pages)
