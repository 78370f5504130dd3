"""A terminal session as an animated SVG for the README: the tutorial's commands, with the output that they print.

`make figures` runs the commands, stores commands, output and times in docs/data/session.json, and draws them. A test
compares the drawing with the recording, and the recording with the tutorial.
"""

from __future__ import annotations

import json
import os
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from intloom.common.temporary_files import temporary_folder
from intloom.files import write_text
from tools import tutorial

RECORDING = tutorial.ROOT / "docs/data/session.json"
PICTURE = tutorial.ROOT / "docs/assets/session.svg"
COMMANDS = (
    "intloom zoo build mini_yolo --imgsz 64 -o work/net.onnx",
    "intloom quantize work/net.onnx -o work/net.q.onnx",
    "intloom compile work/net.q.onnx --preset nano -o work/net.loom",
    "intloom run work/net.loom --backend rtl --check -o work/run",
    "intloom report work/run",
)
_COLUMNS = 104
_WIDTH, _LINE, _TOP, _LEFT = 860, 19, 44, 16
_TYPING, _MOST_WAIT = 0.035, 2.0
"""Seconds for a typed character, and the longest wait for a command."""
_STYLE = """
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d5dae0; white-space: pre; }
.command { fill: #ffffff; font-weight: 700; } .warning { fill: #e7c94b; } .good { fill: #6fdcae; }
.title { fill: #9aa2ab; }
g { opacity: 0; animation: show 1ms linear forwards; }
@keyframes show { to { opacity: 1; } }
@media (prefers-reduced-motion: reduce) { g { opacity: 1; animation: none; } }
"""
_CLASSES = (("$ ", "command"), ("WARNING", "warning"), ("equal ", "good"))


@dataclass(frozen=True)
class Step:
    """A command with its output and its duration in seconds."""

    command: str
    output: tuple[str, ...]
    seconds: float


def record() -> list[Step]:
    """Run the commands in an empty folder."""
    steps, before = [], Path.cwd()
    with temporary_folder() as folder:
        os.chdir(folder)
        try:
            for command in COMMANDS:
                started = time.monotonic()
                output = tutorial.run(tutorial.Block((command,), ""))
                steps.append(Step(command, tuple(output.splitlines()), round(time.monotonic() - started, 1)))
        finally:
            os.chdir(before)
    return steps


def recorded() -> list[Step]:
    """The stored session."""
    steps = json.loads(RECORDING.read_text(encoding="utf-8"))
    return [Step(s["command"], tuple(s["output"]), s["seconds"]) for s in steps]


def _timed(steps: Sequence[Step]) -> Iterator[tuple[float, str]]:
    """Lines of the screen with the second at which each appears. Waits are cut to a length that a reader accepts."""
    now = 0.5
    for step in steps:
        now += _TYPING * len(step.command)
        yield now, f"$ {step.command}"
        now += min(step.seconds, _MOST_WAIT)
        for line in step.output:
            for part in textwrap.wrap(line, _COLUMNS, subsequent_indent="  ") or [""]:
                yield now, part
        now += 0.6


def svg(steps: Sequence[Step]) -> str:
    """The drawing."""
    lines = list(_timed(steps))
    height = _TOP + _LINE * len(lines) + _LINE // 2
    rows = []
    for number, (when, text) in enumerate(lines):
        kind = next((k for start, k in _CLASSES if text.startswith(start)), "")
        label = f' class="{kind}"' if kind else ""
        y = _TOP + _LINE * number + _LINE // 2
        rows.append(
            f'<g style="animation-delay:{when:.2f}s"><text{label} x="{_LEFT}" y="{y}">{escape(text)}</text></g>'
        )
    dots = "".join(f'<circle cx="{20 + 18 * i}" cy="17" r="5" fill="#4c545d"/>' for i in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img">\n'
        "<title>A network is built, quantized, compiled, simulated in RTL and compared byte for byte</title>\n"
        f"<style>{_STYLE}</style>\n"
        f'<rect width="{_WIDTH}" height="{height}" rx="10" fill="#14171a"/>{dots}'
        f'<text class="title" x="{_WIDTH / 2:.0f}" y="22" text-anchor="middle">intloom</text>\n'
        + "\n".join(rows)
        + "\n</svg>\n"
    )


def main() -> None:
    """Record the session and draw it."""
    steps = record()
    write_text(RECORDING, json.dumps([asdict(s) for s in steps], indent=1) + "\n")
    write_text(PICTURE, svg(steps))


if __name__ == "__main__":
    main()
