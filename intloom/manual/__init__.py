"""Manual pages generated from the sources: `python -m intloom.manual` writes them."""
