"""Rewrites the derived manual pages in `docs/`."""

from pathlib import Path

from . import write_pages

for page in write_pages(Path("docs")):
    print(page)
