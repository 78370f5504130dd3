"""The notebook runs from the first cell to the last, and its values display as tables."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples/walkthrough.ipynb"


@pytest.mark.slow
def test_every_cell_runs_and_displays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, shown = {}, []
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], "the stored notebook has no outputs"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    assert len(shown) == 6
    assert all(len(text) < 2_000_000 for text in shown)
    assert "<table" in shown[2] and "<table" in shown[3] and "bit-exact" in shown[5]
