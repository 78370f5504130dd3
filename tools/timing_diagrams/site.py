"""MkDocs hook: draws the WaveDrom sources of docs/timing as SVG while the site is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import wavedrom
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """Add timing/NAME.svg for every timing/NAME.json."""
    for source in sorted(Path(config["docs_dir"], "timing").glob("*.json")):
        drawing = wavedrom.render(source.read_text(encoding="utf-8"))
        # WaveDrom draws in black on transparent ground, which a dark theme hides.
        drawing.elements.insert(1, drawing.rect(size=("100%", "100%"), fill="white"))
        files.append(File.generated(config, f"timing/{source.stem}.svg", content=drawing.tostring()))
    return files
