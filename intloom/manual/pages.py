"""List of generated pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from intloom.files import write_text
from intloom.manual.commands import command_page
from intloom.manual.operators import operator_page

PAGES: Mapping[str, Callable[[], str]] = {"supported-operators.md": operator_page, "command-line.md": command_page}
"""Maps file names in `docs/` to the functions that return their text."""


def write_pages(folder: Path) -> list[Path]:
    """Write all pages; return their paths."""
    paths = []
    for name, page in PAGES.items():
        write_text(folder / name, page())
        paths.append(folder / name)
    return paths
