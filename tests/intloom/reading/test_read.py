"""Trained networks read drawn pictures: as the float model does, and byte for byte on the accelerator."""

import re
from html import escape
from pathlib import Path

import numpy as np
import onnx
import pytest

import intloom
from intloom.compiler.reference import open_session
from intloom.files import write_bytes
from intloom.quantization import Calibration, quantize
from intloom.reading.drawing import draw_line, draw_photograph
from intloom.reading.networks import (
    DETECTOR_SHAPE,
    RECOGNIZER_SHAPE,
    characters,
    decoded,
    detector_input,
    mask_overlap,
    recognizer_input,
)
from intloom.reading.read import ReadOptions, sample_lines, sample_pages
from tests.intloom.report.pages import misplaced_values
from tests.support.notebook import run_notebook

NOTEBOOK = Path(__file__).parents[3] / "examples/read_text.ipynb"
PAGE = (Path(__file__).parents[3] / "docs/accuracy.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("pretrained_models")
def test_a_picture_is_read_as_in_the_notebook(tmp_path, capsys, monkeypatch):
    """By one method of calibration; their choice has tests in `test_choice.py`."""
    monkeypatch.setattr("intloom.quantization.static.CANDIDATES", (Calibration.MINMAX,))
    texts, picture = draw_photograph(5)
    picture.save(tmp_path / "photograph.png")
    options = ReadOptions(
        folder=tmp_path / "out", picture=tmp_path / "photograph.png", backend="golden", lines=2,
        shape=(1, 3, 192, 256), pages_to_calibrate=1, lines_to_calibrate=3,
    )  # fmt: skip
    photograph, done, boxed = run_notebook(NOTEBOOK, {"options": options})
    assert photograph.size == boxed.size == picture.size
    assert np.any(np.asarray(boxed) != np.asarray(photograph))
    assert len(done.lines) == 2
    assert all(line.box and f">{escape(line.text)}</td>" in done._repr_html_() for line in done.lines)
    for line in done.lines:
        assert line.text.strip() == line.float_text.strip() and line.text.strip() in texts
    assert done.overlap > 0.9
    result = done.as_dict()
    assert result["mismatches"] == 0 and all(n["compared_bytes"] > 1000 for n in result["lines"])
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()] == ["quantize", "compile"] * 2 + [
        "run"
    ] * 3
    assert misplaced_values(done.page.read_text()) == []
    for name in re.findall(r'(?:src|href)="([^"]+)"', done.page.read_text()):
        assert (done.page.parent / name).stat().st_size > 0, name


def errors(read, text):
    """Letters to insert, remove or replace."""
    row = list(range(len(text) + 1))
    for i, letter in enumerate(read, 1):
        before, row[0] = row[0], i
        for j, wanted in enumerate(text, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != wanted))
    return row[-1]


def sessions(model, shape, samples, folder):
    """The float model's and the quantized one's session, with default options."""
    write_bytes(folder / "f.onnx", model)
    np.save(folder / "c.npy", np.concatenate(samples))
    quantize(folder / "f.onnx", folder / "q.onnx", folder / "c.npy", dims={f"x.{i}": n for i, n in enumerate(shape)})
    return open_session(model), open_session((folder / "q.onnx").read_bytes())


def stated(row):
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| {row}"))
    return [float(n) for n in re.findall(r"(\d+\.\d+)", line.split("|", 2)[2])]


@pytest.mark.evidence
def test_int8_reads_200_lines_as_well_as_float(pretrained_models, tmp_path):
    samples = sample_lines(ReadOptions.lines_to_calibrate)
    letters, lines = characters(onnx.load_from_string(pretrained_models.recognizer)), [draw_line(i) for i in range(200)]
    pictures, total = [recognizer_input(line) for _, line in lines], sum(len(text) for text, _ in lines)
    reads = [
        [decoded(session.run(None, {"x": x})[0][0], letters) for x in pictures]
        for session in sessions(pretrained_models.recognizer, RECOGNIZER_SHAPE, samples, tmp_path)
    ]
    shares = [
        100 * sum(errors(read.strip(), text) for read, (text, _) in zip(of_model, lines, strict=True)) / total
        for of_model in reads
    ]
    print(f"character error: float {shares[0]:.2f} %, int8 {shares[1]:.2f} %")
    assert shares[1] <= shares[0] + 0.3
    assert shares == pytest.approx(stated("character error"), abs=0.15)
    program = intloom.compile(tmp_path / "q.onnx", "base")
    assert len(program.bundle.programs) == 1, "no node of the host between two of the accelerator"
    rtl = intloom.Session(program, backend="rtl", check=True)
    for x, read in zip(pictures[:3], reads[0], strict=False):
        assert decoded(rtl.run(None, {"x": x})[0][0], letters) == read
    assert [100 * rtl.last.record["mac_use"]] == pytest.approx(stated("array use of the recognizer"), abs=0.5)


@pytest.mark.evidence
def test_masks_of_five_pictures_overlap_those_of_float(pretrained_models, tmp_path):
    samples = sample_pages(ReadOptions.pages_to_calibrate)
    floats, integers = sessions(pretrained_models.detector, DETECTOR_SHAPE, samples, tmp_path)
    inputs = [{"x": detector_input(draw_photograph(i)[1])} for i in range(5)]
    overlaps = [mask_overlap(floats.run(None, x)[0], integers.run(None, x)[0]) for x in inputs]
    print("overlap of masks:", *(f"{overlap:.3f}" for overlap in overlaps))
    assert min(overlaps) >= 0.95
    assert min(overlaps) == pytest.approx(stated("overlap")[0], abs=0.01)
