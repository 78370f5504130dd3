"""Write the generated manual pages to `docs/`."""

from pathlib import Path

from intloom.manual import write_pages

for page in write_pages(Path("docs")):
    print(page)
