"""The commands of the tutorial, and the output that it shows for each block of them.

`make figures` runs the commands and writes their output into docs/tutorial.md. A test runs them and compares.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from intloom.cli import main as intloom
from intloom.common.temporary_files import temporary_folder
from intloom.files import write_text

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/tutorial.md"
_BLOCK = re.compile(r"```sh\n(?P<commands>.*?)```\n(?:\n```text\n(?P<shown>.*?)```\n)?", re.DOTALL)
_MOST_LINES, _FIRST, _LAST = 8, 3, 3
"""Longer outputs are shown as their first and last lines."""
_SKIPPED = ("preprocessed ", "warning '")
"""Starts of lines that depend on the state of the cache, or on the last digit of a scale and so on the processor."""
_MEASURED = re.compile(
    r"\d[\d,]*(\.\d+)? (s|kHz|instructions|cycles|bytes)\b|[\d.]+ % of [\d,]+ values differ.*|\d+\.\d+"
)
"""Times, and what depends on the processor.

Fractions do, and so do sizes of the program: the last digit of a calibrated scale differs, and an addition with results
near a tie takes more instructions. In the file itself, onnxruntime's sums saturate on some processors.
"""


@dataclass(frozen=True)
class Block:
    """Commands of one code block, and the output shown after it."""

    commands: tuple[str, ...]
    shown: str


def blocks() -> list[Block]:
    """All blocks of the page, in order."""
    matches = _BLOCK.finditer(PAGE.read_text(encoding="utf-8"))
    return [Block(tuple(b["commands"].splitlines()), b["shown"] or "") for b in matches]


def run(block: Block) -> str:
    """What the commands of a block print in the current folder, as the page shows it."""
    lines = [line for command in block.commands for line in _shortened(_output(command).splitlines())]
    return "".join(f"{line}\n" for line in lines)


def comparable(text: str) -> str:
    """The text without the numbers that depend on the machine."""
    return _MEASURED.sub("#", text)


def _output(command: str) -> str:
    program, *words = shlex.split(command)
    if program == "printf":
        return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = intloom(words)
    if program != "intloom" or code:
        raise RuntimeError(f"{command} ended with code {code}: {printed.getvalue()}")
    return printed.getvalue()


def _shortened(lines: list[str]) -> list[str]:
    kept = [re.sub(r" {3,}", "  ", line.rstrip()) for line in lines if not line.startswith(_SKIPPED)]
    return kept if len(kept) <= _MOST_LINES else [*kept[:_FIRST], "...", *kept[-_LAST:]]


def main() -> None:
    """Run all commands and write their output into the page."""
    page = PAGE.read_text(encoding="utf-8")
    before = Path.cwd()
    with temporary_folder() as folder:
        os.chdir(folder)
        shown = iter([run(block) for block in blocks()])
        os.chdir(before)

    def rewritten(block: re.Match[str]) -> str:
        text = next(shown)
        return f"```sh\n{block['commands']}```\n" + (f"\n```text\n{text}```\n" if text else "")

    write_text(PAGE, _BLOCK.sub(rewritten, page))


if __name__ == "__main__":
    main()
