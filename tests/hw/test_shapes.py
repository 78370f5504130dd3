"""The shapes of `tests/support/shapes.py` take every branch of elaboration that any hardware takes."""

import sys
from collections.abc import Iterable
from functools import cache
from types import CodeType, FrameType
from typing import Any

import pytest
from amaranth.hdl import Fragment

from intloom.hw.mac.array.product import OneModule
from intloom.hw.npu import Npu
from intloom.hw.spec.params import HardwareParams
from intloom.sim.random_programs.hardware import hardware_of
from tests.support.shapes import SHAPES

Step = tuple[CodeType, int, int]
"""An instruction of the interpreter after another one."""


@cache
def steps(params: HardwareParams) -> dict[Step, int | None]:
    """All that the elaboration does in the RTL's own sources, and the line of each."""
    found: dict[Step, int | None] = {}

    def call(frame: FrameType, event: str, _: Any) -> Any:
        path, code, last = frame.f_code.co_filename, frame.f_code, -1
        if "/hw/" not in path or "/hw/spec/" in path or "/tests/" in path:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

        def opcode(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "opcode":
                found.setdefault((code, last, frame.f_lasti), frame.f_lineno)
                last = frame.f_lasti
            return opcode

        return opcode

    before = sys.gettrace()
    sys.settrace(call)
    try:
        Fragment.get(Npu(params), OneModule(arrays=True))
    finally:
        sys.settrace(before)
    return found


def missing(shapes: Iterable[HardwareParams], hardware: Iterable[HardwareParams]) -> set[tuple[str, int | None]]:
    """Functions and lines where the elaboration of some hardware takes a step that that of no shape takes."""
    taken = {step for params in shapes for step in steps(params)}
    found = (item for params in hardware for item in steps(params).items())
    return {(step[0].co_qualname, line) for step, line in found if step not in taken}


@pytest.mark.slow
@pytest.mark.parametrize("hardware", [range(2, 24, 11), pytest.param(range(24), marks=pytest.mark.nightly)])
def test_shapes_have_every_structural_branch(hardware: range) -> None:
    """Presets and random hardware; nightly all of it. A branch that `nano` alone does not have is found."""
    assert not missing(SHAPES.values(), map(hardware_of, hardware))
    assert any("Parity" in name for name, _ in missing([SHAPES["nano"]], [SHAPES["bytes"]]))
