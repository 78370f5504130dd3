"""Every operator has a schedule: a package that lacks one is not imported."""

import subprocess
import sys

import pytest

from intloom.compiler.ir import Add, Mul
from intloom.compiler.schedule.stages.elementwise import schedule_elementwise
from intloom.compiler.schedule.stages.stage_list import schedule_of, schedules

_WITHOUT = """
from intloom.compiler.ir import Resize
from intloom.compiler.ir.node import Node, operator
parts = {name: getattr(Resize, name) for name in ("result_shape", "evaluate", "export")}
operator(type("Rotate", (Node,), parts))
import intloom.compiler.schedule
"""


def test_an_operator_without_a_schedule_is_refused_at_import() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=False)
    assert "the operator Rotate must have a schedule" in done.stderr
    assert done.returncode != 0


def test_an_operator_takes_the_schedule_of_its_base_class() -> None:
    assert schedule_of(Mul) is schedule_elementwise
    assert schedule_of(Add) is not schedule_elementwise


def test_a_second_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="Add already has a schedule"):
        schedules(Add)(lambda stages, node: None)
