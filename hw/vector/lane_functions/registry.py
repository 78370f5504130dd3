"""The registry of lane functions: what an instruction feeds to the affine lane in place of operand A's byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from amaranth.hdl import Value

from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams


class LaneInputs(NamedTuple):
    """A lane's signed inputs: a byte of each operand, and the sum of a window."""

    a: Value
    b: Value
    total: Value


@dataclass(frozen=True)
class LaneFunction:
    """A combinational function of the lane's inputs; it has one cycle. The second affine operand is then zero."""

    kind: Kind
    flag: str
    """Name of the flag in the decoded operation."""
    value: Callable[[LaneInputs], Value]
    model: Callable[[int, int, int], int]
    """The same of Python integers."""

    def exists(self, params: HardwareParams) -> bool:
        """Whether hardware with these parameters has the function."""
        option = BY_KIND[self.kind].requires
        return not option or bool(getattr(params, option))


_FUNCTIONS: dict[Kind, LaneFunction] = {}


def lane_function(
    kind: Kind, flag: str, model: Callable[[int, int, int], int]
) -> Callable[[Callable[[LaneInputs], Value]], Callable[[LaneInputs], Value]]:
    """Register the function that an instruction selects."""

    def register(value: Callable[[LaneInputs], Value]) -> Callable[[LaneInputs], Value]:
        if kind in _FUNCTIONS:
            raise ValueError(f"{kind} already has a lane function")
        _FUNCTIONS[kind] = LaneFunction(kind, flag, value, model)
        return value

    return register


def lane_functions() -> Mapping[Kind, LaneFunction]:
    """All lane functions by instruction."""
    return _FUNCTIONS
