"""The page of the evidence has every component and every measurement, and says which are of an older design."""

from pathlib import Path

import pytest

from intloom.common import evidence
from tools import evidence_page
from tools.components import components, name_of
from tools.coverage.waivers import read_waivers


def test_the_page_has_every_component_and_every_waiver() -> None:
    text = evidence_page.page()
    assert not [c for c in components() if f"\n| {name_of(c)} | " not in text]
    assert all(f" | {waiver.reason} |" in text for waiver in read_waivers())


def test_a_measurement_of_an_older_design_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.json"
    now = evidence.measured({}, "make it", evidence_page.ROOT, ["hw/bus"])
    evidence.record(path, "present", now)
    evidence.record(path, "past", evidence.Evidence({}, "2026-01-02", "abc", "make it", ("hw/bus",), "other"))
    monkeypatch.setattr(evidence_page, "_FILES", {"sizes": path})
    text = evidence_page.page()
    assert f"| sizes | present | `make it` | {now.date}, after commit {now.commit} |" in text
    assert "| sizes | past | `make it` | 2026-01-02, after commit abc, measured on an older design |" in text
