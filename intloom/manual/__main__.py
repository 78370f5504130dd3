"""List of generated pages, and the command that writes them to `docs/`: `python -m intloom.manual`."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from intloom.cli.commands import COMMANDS
from intloom.files import write_text
from intloom.manual.commands import command_page
from intloom.manual.man_pages import man_page
from intloom.manual.operators import operator_page, refusal_page
from intloom.manual.python_api import api_page

PAGES: Mapping[str, Callable[[], str]] = {
    "supported-operators.md": operator_page,
    "refusals.md": refusal_page,
    "command-line.md": command_page,
    "python-reference.md": api_page,
    **{f"man/intloom{f'-{name}' if name else ''}.1": partial(man_page, name) for name in ("", *COMMANDS)},
}
"""Maps file names in `docs/` to the functions that return their text."""


def write_pages(folder: Path) -> list[Path]:
    """Write all pages; return their paths."""
    for name, page in PAGES.items():
        write_text(folder / name, page())
    return [folder / name for name in PAGES]


if __name__ == "__main__":
    print(*write_pages(Path("docs")), sep="\n")
