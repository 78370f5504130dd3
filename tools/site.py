"""MkDocs hook: draws WaveDrom sources of docs/timing, adds the page of the evidence, marks pages with older figures."""

import sys
from pathlib import Path
from typing import Any

import wavedrom
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """Add timing/NAME.svg for every timing/NAME.json, and evidence.md."""
    # MkDocs runs from the repository, but does not import from it.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tools.evidence_page import page

    for source in sorted(Path(config["docs_dir"], "timing").glob("*.json")):
        drawing = wavedrom.render(source.read_text(encoding="utf-8"))
        # WaveDrom draws in black on transparent ground, which a dark theme hides.
        drawing.elements.insert(1, drawing.rect(size=("100%", "100%"), fill="white"))
        files.append(File.generated(config, f"timing/{source.stem}.svg", content=drawing.tostring()))
    files.append(File.generated(config, "evidence.md", content=page()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A page says first which of its figures are older than their sources."""
    from tools.evidence_page import notice

    title, line, text = markdown.partition("\n")
    return f"{title}{line}\n{notice(page.file.src_uri)}{text}"
