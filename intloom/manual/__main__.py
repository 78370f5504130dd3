"""Rewrites the derived manual pages in `docs/`."""

from pathlib import Path

from intloom.manual import write_pages

for page in write_pages(Path("docs")):
    print(page)
