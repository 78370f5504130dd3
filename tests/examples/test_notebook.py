"""The notebook runs from the first cell to the last, and its values display as tables."""

from pathlib import Path

import pytest

from tests.support.notebook import run_notebook

NOTEBOOK = Path(__file__).parents[2] / "examples/walkthrough.ipynb"


@pytest.mark.slow
def test_every_cell_runs_and_displays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Two configurations instead of four.
    shown = run_notebook(NOTEBOOK, {"space": {"preset": "nano", "rows": [4, 8], "lut_products": 0}})
    shown = [v._repr_html_() if hasattr(v, "_repr_html_") else repr(v) for v in shown]
    assert len(shown) == 8
    assert all(len(text) < 2_000_000 for text in shown)
    assert "<table" in shown[2] and "<table" in shown[3] and "bit-exact" in shown[5]
    assert "<svg" in shown[6] and "<table" in shown[6] and "of the cycles go to" in shown[7]
