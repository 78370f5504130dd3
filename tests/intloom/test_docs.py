"""The manual: derived pages are fresh, the tutorial's commands work as printed, examples do what they say."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import intloom
from intloom.cli import main
from intloom.demo import DEMO_PRESET, DemoOptions
from intloom.flow.networks import quantized_network
from intloom.hw.spec.params import from_toml, preset
from intloom.manual.__main__ import PAGES
from intloom.quantization import Calibration
from intloom.sim.rtl.job import MemorySettings
from tools import figures, tutorial

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_derived_pages_are_fresh(name):
    text = (DOCS / name).read_text()
    assert text == PAGES[name](), "run: python -m intloom.manual"
    assert "[bold]" not in text, "markup of the terminal"


def test_the_preset_page_shows_hardware_that_can_be_built(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", (DOCS / "adding-a-preset.md").read_text(), re.DOTALL)
    (tmp_path / "mine.toml").write_text(text)
    params, base = from_toml(tmp_path / "mine.toml"), preset("base")
    assert base.replace(cols=params.cols, weight_kib=params.weight_kib) == params != base


def test_pages_of_the_manual_are_all_in_its_menu():
    menu = (ROOT / "mkdocs.yml").read_text()
    assert not [p.name for p in DOCS.glob("*.md") if f": {p.name}" not in menu]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_to_files_lead_somewhere(name):
    links = re.findall(r"\]\((?!https?://|mailto:)([^)#]+)", (ROOT / name).read_text())
    assert not [link for link in links if not (ROOT / link).exists()]


NARROW, SAMPLES = 32, 10
ONLY_NIGHTLY = ("--waves", "explore", "decoded(")
"""Text in blocks whose result has no narrow form, or whose commands have tests of their own in tests/intloom."""


@pytest.mark.slow
@pytest.mark.usefixtures("verilog_from_cache")
def test_the_tutorials_commands_run_for_a_narrow_picture(pretrained_models, tmp_path, monkeypatch):
    """In order. A narrow picture and one method of calibration change neither first nor last line of an output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("intloom.quantization.static.CANDIDATES", (Calibration.MINMAX,))
    tutorial.leave_demo_files(pretrained_models)
    for name in ("recognizer.npy", "line-1-input.npy"):
        np.save(f"out/demo/{name}", np.load(f"out/demo/{name}")[:SAMPLES, ..., :NARROW])
    for block in tutorial.blocks():
        if any(text in block.code for text in ONLY_NIGHTLY):
            continue
        code = block.code.replace("48,320", f"48,{NARROW}").replace("verilog --preset base", "verilog --preset nano")
        printed, shown = (
            tutorial.comparable(text).splitlines() for text in (tutorial.run(replace(block, code=code)), block.shown)
        )
        assert (printed[0], printed[-1]) == (shown[0], shown[-1]), f"{code}: run python -m tools.tutorial"
    for made in ("net.loom", "net.s", "run/report.html", "rtl/npu.v"):
        assert (tmp_path / "work" / made).stat().st_size > 0, made


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.needs("liblz4-dev")
def test_the_tutorial_shows_what_its_blocks_print(pretrained_models, tmp_path, monkeypatch):
    """In order; only the RTL simulator's build is taken from the user's cache where it is there."""
    monkeypatch.chdir(tmp_path)
    tutorial.leave_demo_files(pretrained_models)
    for block in tutorial.blocks():
        printed = tutorial.run(block)
        assert tutorial.comparable(printed) == tutorial.comparable(block.shown), (
            f"{block.code}: run python -m tools.tutorial"
        )
    for made in ("waves/dump.fst", "explore/explore.html"):
        assert (tmp_path / "work" / made).stat().st_size > 0, made


def test_the_demo_row_of_the_readme_is_the_demo():
    row, line = figures.ROWS[-1], readme_rows()[-1]
    assert line.startswith(f"| {row.label} | `{row.preset}` |")
    assert (row.network, row.imgsz, row.preset, row.memory) == (
        DemoOptions.model, DemoOptions.imgsz, DEMO_PRESET, MemorySettings()
    )  # fmt: skip


@pytest.mark.slow
def test_the_commands_of_the_readme_run(tmp_path, monkeypatch, float_models):
    """With a small network, the smallest hardware and the instruction simulator."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "yolov8n.onnx").write_bytes(float_models("mini_yolo", 32).read_bytes())
    (tmp_path / "photos").mkdir()
    Image.fromarray(np.full((48, 64, 3), 99, np.uint8)).save(tmp_path / "photos/a.png")
    commands, python = re.findall(
        r"```(?:sh|python)\n(.*?)```", figures.README.read_text().split("## Usage")[1], re.DOTALL
    )
    lines = [
        line.partition("#")[0]
        for line in commands.replace("base", "nano").replace("rtl --check", "isa --check").splitlines()
    ]
    assert len(lines) >= 6
    for line in lines:
        program, *words = line.split()
        assert program == "intloom" and main(words) == 0, line
    assert (tmp_path / "out/run/report.html").exists() and (tmp_path / "rtl/npu.v").exists()
    python = python.replace("base", "nano").replace('"rtl"', '"isa"')
    exec(compile(python, "README.md", "exec"), {"image": np.zeros((1, 3, 32, 32), np.float32)})


@pytest.mark.slow
@pytest.mark.parametrize("label", ["YOLOv8n-cls, 224x224", pytest.param("YOLOv8n, 96x96", marks=pytest.mark.nightly)])
def test_rows_of_the_readme_are_the_compilers_forecast(label):
    """Forecasts are within 0.3 % of the RTL, so a row that the present compiler does not make is found without it."""
    (row,) = (r for r in figures.ROWS if r.label == label)
    (line,) = (r for r in readme_rows() if r.startswith(f"| {label} |"))
    program = intloom.compile(quantized_network(row.network, row.imgsz), preset=row.preset)
    measured = int(line.split("|")[4].replace(",", ""))
    assert program.predicted_cycles == pytest.approx(measured, rel=0.005), "run make figures"


def test_the_comparison_has_the_readmes_figures_and_a_source_for_all_others():
    text = (DOCS / "comparison.md").read_text()
    sources = text.split("## Sources")[1]
    rows = [
        line
        for line in text.split("## Figures")[1].split("\n## ")[0].splitlines()
        if line.startswith("| ") and "| figure |" not in line
    ]
    measured = " ".join(readme_rows())
    for row in rows:
        if row.startswith("| Intloom"):
            cycles, share = re.search(r"([\d,]+) cycles, ([\d.]+) %", row).groups()
            assert f"{cycles} | **{share} %**" in measured, row
        else:
            assert re.search(r"\[\d+\]", row.split("|")[1]), row
    assert len(rows) >= 7
    cited, listed = set(re.findall(r"\[(\d+)\]", text)), dict(re.findall(r"\| (\d+) \| \[.*?\]\((\S+?)\)", sources))
    assert cited == set(listed) and all(url.startswith("https://") for url in listed.values())


@pytest.mark.evidence
def test_the_readme_has_what_the_demo_prints(tmp_path, capsys):
    assert main(["demo", "-o", str(tmp_path), "--json", "-q"]) == 0
    record = json.loads(capsys.readouterr().out)
    measured = figures.line(figures.ROWS[-1], record)
    assert readme_rows()[-1].split("|")[:-2] == measured.rstrip().split("|")[:-2], "run make figures"


def readme_rows():
    text = figures.README.read_text()
    lines = text.split("<!-- figures -->\n")[1].split("<!-- end of figures -->\n")[0].splitlines()[3:]
    return [line for line in lines if line.startswith("|")]
