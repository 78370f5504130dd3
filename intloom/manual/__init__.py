"""Manual pages that are derived from the code's own tables: `python -m intloom.manual` writes them."""

from intloom.manual.pages import PAGES, write_pages

__all__ = ["PAGES", "write_pages"]
