"""Runs the cells of a notebook in this process."""

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run_notebook(path: Path, instead: Mapping[str, Any] | None = None) -> list[Any]:
    """The values that the cells display, in order; a variable in `instead` gets that value once a cell assigns it."""
    names, shown = dict[str, Any](), []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], "the stored notebook has no outputs"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        before = set(names)
        exec(compile(tree, "cell", "exec"), names)
        names.update({name: value for name, value in (instead or {}).items() if name in set(names) - before})
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return shown
