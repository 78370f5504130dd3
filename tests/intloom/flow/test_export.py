"""Exported C sources of programs whose file an attacker made."""

import dataclasses
import re
import subprocess

import pytest

from intloom.common.errors import ProgramError
from intloom.flow.export import checked_image, export_c
from intloom.hw.spec.isa import Kind
from tests.runtime.support import STRICT, small_program

ATTACKS = (
    "*/ int injected; /*",
    "x\n*/\nint injected;\n/*",
    "\\\n",
    "??/\nint injected;",
    'a"*/#error injected',
    "é" * 500,
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_names_cannot_leave_comments_and_identifiers(attack, tmp_path):
    program, _ = small_program()
    tensors = tuple(dataclasses.replace(t, name=t.name + attack) for t in program.tensors)
    hostile = dataclasses.replace(program, name=attack, tensors=tensors)
    export_c((hostile,), checked_image((hostile,)), tmp_path)
    text = (tmp_path / "program.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    assert "injected" not in re.sub(r"PROGRAM_\w+", "", code).lower()
    assert text.isascii() and max(map(len, text.splitlines())) < 500
    # All of it compiles, under the strictest flags, and defines nothing but the image.
    subprocess.run(["gcc", *STRICT, "-trigraphs", "-c", "program.c", "-o", "program.o"], cwd=tmp_path, check=True)
    defined = subprocess.run(["nm", "program.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert [line.split()[-1] for line in defined.splitlines()] == ["program_image"]


def test_an_unsound_program_is_not_exported():
    program, _ = small_program()
    index = next(n for n, i in enumerate(program.instructions) if i.kind is Kind.LOAD)
    escaping = program.instructions[index].with_fields(dram=1 << 30)
    instructions = (*program.instructions[:index], escaping, *program.instructions[index + 1 :])
    with pytest.raises(ProgramError, match="is outside its"):
        checked_image((dataclasses.replace(program, instructions=instructions),))
