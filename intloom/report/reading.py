"""The page of a picture that was read: boxes, and each line as the float model and as the accelerator read it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from intloom.files import write_text
from intloom.reading.networks import Line
from intloom.report.template import fill

PAGE = "reading.html"


def write_reading(
    folder: Path, lines: Sequence[Line], overlap: float, detector: Mapping[str, Any], shape: Sequence[int]
) -> Path:
    """Write the page into the folder with picture.png and the runs' folders; return its path."""
    runs = [detector, *(line.record for line in lines)]
    text = fill(
        "reading.html.j2",
        lines=lines,
        overlap=overlap,
        detector=detector,
        size=f"{shape[2]} x {shape[3]}",
        wrong=sum(run["mismatches"] for run in runs),
        compared=sum(run["compared_bytes"] for run in runs),
        differing=sum(any(differs for *_, differs in line.marked) for line in lines),
    )
    write_text(folder / PAGE, text)
    return folder / PAGE
