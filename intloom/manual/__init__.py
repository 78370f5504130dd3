"""Manual pages generated from the sources: `python -m intloom.manual` writes them."""

from intloom.manual.pages import PAGES, write_pages

__all__ = ["PAGES", "write_pages"]
