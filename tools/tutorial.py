"""The code blocks of the tutorial, and the output that it shows for each of them.

`make figures` runs the blocks and writes their output into docs/tutorial.md. A test runs them and compares.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from intloom.arrays import save_array
from intloom.cli import main as intloom
from intloom.common.temporary_files import temporary_folder
from intloom.compiler.reference import open_session
from intloom.files import write_bytes, write_text
from intloom.reading.drawing import draw_photograph
from intloom.reading.networks import crop, detector_input, recognizer_input, text_boxes
from intloom.reading.pretrained import Pretrained, pretrained
from intloom.reading.read import ReadOptions, sample_lines

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/tutorial.md"
_BLOCK = re.compile(r"```(?P<language>sh|python)\n(?P<code>.*?)```\n(?:\n```text\n(?P<shown>.*?)```\n)?", re.DOTALL)
_MOST_LINES, _FIRST, _LAST = 8, 3, 3
"""Longer outputs are shown as their first and last lines."""
_SKIPPED = ("preprocessed ", "warning '")
"""Starts of lines that depend on the state of the cache, or on the last digit of a scale and so on the processor."""
_MEASURED = re.compile(
    r"\d[\d,]*(\.\d+)? (s|kHz|instructions|cycles|bytes)\b|[\d.]+ % of [\d,]+ values differ.*|\d+\.\d+"
    r"|[-+]?\d+%|\d[\d,]+"
)
"""Times, what depends on the processor, and what changes with the compiler or with the last count of an area.

Fractions do, and so do sizes of the program: the last digit of a calibrated scale differs, and an addition with results
near a tie takes more instructions. In the file itself, onnxruntime's sums saturate on some processors.
"""


@dataclass(frozen=True)
class Block:
    """A block of commands or of Python, and the output shown after it."""

    language: str
    code: str
    shown: str


def blocks() -> list[Block]:
    """All blocks of the page, in order."""
    return [_block(match) for match in _BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]


def _block(match: re.Match[str]) -> Block:
    return Block(match["language"], match["code"], match["shown"] or "")


def leave_demo_files(models: Pretrained) -> None:
    """Write what `make demo` leaves in the current folder and the page uses: a recognizer, its samples and a line."""
    options = ReadOptions()
    picture = draw_photograph(options.seed)[1]
    (scores,) = open_session(models.detector).run(None, {"x": detector_input(picture)})
    first, *_ = text_boxes(np.asarray(scores)[0, 0], picture.size, options.lines)
    write_bytes(options.folder / "recognizer.onnx", models.recognizer)
    save_array(options.folder / "recognizer.npy", np.concatenate(sample_lines(options.lines_to_calibrate)))
    save_array(options.folder / "line-1-input.npy", recognizer_input(crop(picture, first)))


def run(block: Block) -> str:
    """What a block prints in the current folder, as the page shows it."""
    if block.language == "python":
        with _printed() as text:
            exec(compile(block.code, PAGE.name, "exec"), {})
        return text.getvalue()
    lines = [line for command in block.code.splitlines() for line in _shortened(_output(command).splitlines())]
    return "".join(f"{line}\n" for line in lines)


def comparable(text: str) -> str:
    """The text without the numbers that depend on the machine."""
    return _MEASURED.sub("#", text)


def _output(command: str) -> str:
    program, *words = shlex.split(command)
    if program == "printf":
        return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
    with _printed() as text:
        code = intloom(words)
    if program != "intloom" or code:
        raise RuntimeError(f"{command} ended with code {code}: {text.getvalue()}")
    return text.getvalue()


@contextlib.contextmanager
def _printed() -> Iterator[io.StringIO]:
    """Both streams of this process."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        yield text


def _shortened(lines: list[str]) -> list[str]:
    kept = [re.sub(r" {3,}", "  ", line.rstrip()) for line in lines if not line.startswith(_SKIPPED)]
    return kept if len(kept) <= _MOST_LINES else [*kept[:_FIRST], "...", *kept[-_LAST:]]


def main() -> None:
    """Run all blocks and write their output into the page."""
    page = PAGE.read_text(encoding="utf-8")
    before = Path.cwd()
    with temporary_folder() as folder:
        os.chdir(folder)
        leave_demo_files(pretrained())
        shown = iter([run(block) for block in blocks()])
        os.chdir(before)

    def rewritten(match: re.Match[str]) -> str:
        text = next(shown)
        return f"```{match['language']}\n{match['code']}```\n" + (f"\n```text\n{text}```\n" if text else "")

    write_text(PAGE, _BLOCK.sub(rewritten, page))


if __name__ == "__main__":
    main()
