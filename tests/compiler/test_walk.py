"""docs/walk.md: its functions are called in this order, and its instruction is the one that the compiler emits."""

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import intloom
from intloom.compiler.program.memory import encode_all
from intloom.hw.spec.isa import Kind, disassemble, encode

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "walk.md").read_text(encoding="utf-8")
MOST_FILES = 15
STEPS = re.findall(r"^\d+\. `(\S+\.py)`:[^`]*`([\w.]+)`", PAGE, re.MULTILINE)
"""File and function or class of each step."""


def block(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return text


def compiled() -> tuple[intloom.Program, list[tuple[str, str]]]:
    """The program of the page's model, and file and function, or class, of every call to the compiler."""
    names: dict[str, Any] = {}
    exec(block("python"), names)
    source, calls = names["model"].SerializeToString(), dict[tuple[str, str], None]()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            file = Path(code.co_filename).resolve().relative_to(ROOT).as_posix()
            for name in (code.co_qualname.partition(".")[0], code.co_qualname):
                calls.setdefault((file, name))

    intloom.compile(source, "base")  # registries load their modules at the first call
    sys.setprofile(note)
    try:
        program = intloom.compile(source, "base")
        encode_all(program.program)
    finally:
        sys.setprofile(None)
    return program, list(calls)


def test_the_steps_happen_in_this_order_and_emit_this_instruction() -> None:
    program, calls = compiled()
    assert 0 < len(STEPS) == PAGE.count(".py`: ") <= MOST_FILES
    assert [step for step in STEPS if step not in calls] == []
    assert sorted(STEPS, key=calls.index) == STEPS
    convolutions = [i for i in program.program.instructions if i.kind is Kind.CONV]
    assert len(convolutions) == 2
    assert block("text") == f"{disassemble(convolutions[0])}\n{encode(convolutions[0]).hex()}\n"
