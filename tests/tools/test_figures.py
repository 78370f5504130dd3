"""README's table shows the recorded figures."""

from dataclasses import replace

import pytest

from intloom.common import evidence
from intloom.common.errors import EnvironmentFault
from intloom.sim.rtl.job import MemorySettings
from tools import figures
from tools.figures import README, ROWS, Row, renew, require_idle, table


def test_every_row_has_its_own_name() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)


def test_the_table_is_the_recorded_one() -> None:
    assert table() in README.read_text(encoding="utf-8"), "run make figures, or add figures.OLDER below the table"


def test_a_loaded_machine_is_not_measured() -> None:
    require_idle(lambda _seconds: 3.0)
    with pytest.raises(EnvironmentFault, match="55 % of the processors are in use"):
        require_idle(lambda _seconds: 55.0)


def test_a_row_is_measured_again_only_if_hardware_program_or_memory_has_changed(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(figures, "FIGURES", tmp_path / "figures.json")
    monkeypatch.setattr(figures, "require_idle", lambda: None)
    measured, real = [], figures.measure
    monkeypatch.setattr(figures, "measure", lambda row, program: measured.append(row) or real(row, program))
    row = Row("tiny", "tiny", 16, "nano")
    slow = Row("tiny", "tiny", 16, "nano", MemorySettings(read_latency=400))
    renew(row)
    first = evidence.read(figures.FIGURES)[row.key]
    older = replace(first, digest="of older sources", date="2026-01-01")
    evidence.record(figures.FIGURES, row.key, older)
    renew(row)
    assert evidence.read(figures.FIGURES)[row.key] == replace(older, digest=first.digest) and measured == [row]
    for changed in (slow, replace(row, network="c2f", imgsz=32), replace(row, preset="small")):
        evidence.record(figures.FIGURES, changed.key, older)
        renew(changed)
        assert measured[-1] == changed and evidence.read(figures.FIGURES)[changed.key].date == first.date
    assert evidence.read(figures.FIGURES)[slow.key].values["cycles"] > 0
