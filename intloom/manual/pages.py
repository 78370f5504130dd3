"""The list of derived pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from intloom.files import write_text
from intloom.manual.commands import command_page
from intloom.manual.operators import operator_page

PAGES: Mapping[str, Callable[[], str]] = {"supported-operators.md": operator_page, "command-line.md": command_page}
"""File name in `docs/` to the function that gives its text."""


def write_pages(folder: Path) -> list[Path]:
    """Writes all pages; gives their paths."""
    paths = []
    for name, page in PAGES.items():
        write_text(folder / name, page())
        paths.append(folder / name)
    return paths
