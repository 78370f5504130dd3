"""The page of an evaluation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intloom.files import write_text
from intloom.report.template import fill


def write_evaluation(name: str, evaluation: Mapping[str, Any], folder: Path) -> Path:
    """Write evaluation.html for an evaluation as plain values; pictures of images are in the same folder."""
    first = next(iter(evaluation["scores"].values()))
    page = folder / "evaluation.html"
    text = fill(
        "evaluation.html.j2",
        name=name,
        e=evaluation,
        figures=list(first["figures"]),
        classes=list(first["classes"]),
        worst=[Path(p).name for p in evaluation["worst"]],
    )
    write_text(page, text)
    return page
