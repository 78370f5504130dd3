"""MkDocs hook: the pages of the test plan and of the sign-off, from the files that they are made of."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

# MkDocs runs from the repository, but does not import from it.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.signoff.present import present_page, present_test_plan  # needs the path above

_WIDE = "---\nhide: [toc]\n---\n\n"
"""Without its table of contents a page has space for wide tables."""


def on_files(files: Files, config: Any) -> Files:
    """Add both pages."""
    files.append(File.generated(config, "test-plan.md", content=present_test_plan()))
    files.append(File.generated(config, "sign-off.md", content=_WIDE + present_page()))
    return files
