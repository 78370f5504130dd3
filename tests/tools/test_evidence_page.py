"""The page of the evidence has every component and every measurement, and says which are of an older design."""

import re
from pathlib import Path

import pytest

from intloom.common import evidence
from tests.support.shapes import SHAPES
from tools import evidence_page
from tools.components import components, name_of
from tools.coverage.waivers import read_waivers
from tools.mutate.score import Score, read_scores, write_score


def test_the_page_has_every_component_and_every_waiver() -> None:
    text = evidence_page.page()
    assert not [c for c in components() if f"\n| {name_of(c)} | " not in text]
    assert all(f" | {waiver.reason} |" in text for waiver in read_waivers())


def test_the_page_has_each_fault_without_a_test_or_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component, line = "affine:AffineLane", "with m.If(stage[3]):"
    listed, hole = "statement 0, operand all, bit 0 stuck at 1", "statement 0, operand all, bit 0 inverted"
    score = Score(component, faults=9, found=7, survivors=((line, listed), (line, hole)))
    write_score(tmp_path / "scores.json", score)
    monkeypatch.setattr(evidence_page, "read_scores", lambda: read_scores(tmp_path / "scores.json"))
    text = evidence_page.page()
    assert f"| {component} | {evidence_page._code(line)} | {hole} |" in text and listed not in text
    assert "87.5 % of 8 |" in text


def test_a_measurement_of_an_older_design_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.json"
    now = evidence.measured({}, "make it", evidence_page.ROOT, ["hw/bus"])
    evidence.record(path, "present", now)
    evidence.record(path, "past", evidence.Evidence({}, "2026-01-02", "abc", "make it", ("hw/bus",), "other"))
    monkeypatch.setattr(evidence_page, "_FILES", {"sizes": path})
    text = evidence_page.page()
    assert f"| sizes | present | `make it` | {now.date}, after commit {now.commit} |" in text
    assert "| sizes | past | `make it` | 2026-01-02, after commit abc, measured on an older design |" in text


def test_a_page_with_older_figures_says_so_and_the_command_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kept.json"
    monkeypatch.setattr(evidence_page, "_FILES", {"sizes": path})
    monkeypatch.setattr(evidence_page, "_PAGES", {"verification.md": ("sizes",)})
    evidence.record(path, "present", evidence.measured({}, "make it", evidence_page.ROOT, ["hw/bus"]))
    assert evidence_page.main() == 0
    assert not evidence_page.notice("verification.md")
    evidence.record(path, "past", evidence.Evidence({}, "2026-01-02", "abc", "make it", ("hw/bus",), "other"))
    assert "sizes: 1 of 2, renewed by `make it`" in evidence_page.notice("verification.md")
    assert not evidence_page.notice("isa.md")
    assert evidence_page.main() == 1
    assert "sizes, past: measured 2026-01-02 after commit abc; renew it by: make it" in capsys.readouterr().out


VERIFICATION = (evidence_page.ROOT / "docs/verification.md").read_text(encoding="utf-8")


def test_the_page_for_auditors_names_files_that_exist() -> None:
    """It names each file of proofs, and every row that names a file names one that is there."""
    tests = evidence_page.ROOT / "tests"
    named = set(re.findall(r"`((?:[a-z_]+/)*(?:test|bench)_\w+)\*?`", VERIFICATION))
    files = {path.stem for path in tests.rglob("*.py")}
    assert len(named) > 20
    assert not [name for name in named if not any(file.startswith(name.rpartition("/")[2]) for file in files)]


def test_the_page_for_auditors_has_the_shapes() -> None:
    for name, p in SHAPES.items():
        columns = (p.vector_slices, p.axi_data_bits, p.axi_addr_bits, p.axi_outstanding)
        assert f"| `{name}` | {p.rows} x {p.cols} | {' | '.join(map(str, columns))} |" in VERIFICATION
