"""Functions are short, and so are files."""

from __future__ import annotations

from pathlib import Path

from tools.sizes import MEDIAN_LINES, functions, long_elaborates, long_files, median_lines


def test_the_median_function_is_short() -> None:
    assert median_lines() <= MEDIAN_LINES


def test_no_elaborate_is_long() -> None:
    assert not long_elaborates()


def test_no_file_is_long() -> None:
    assert not long_files()


def test_docstrings_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text('def f():\n    """One.\n\n    Two.\n    """\n    return 1\n', encoding="utf-8")
    (found,) = functions(path)
    assert (found.name, found.lines) == ("f", 2)
