"""VAVG: the sum of a window."""

from __future__ import annotations

from amaranth.hdl import Value

from intloom.hw.spec.isa import Kind
from intloom.hw.vector.lane_functions.registry import LaneInputs, lane_function


@lane_function(Kind.VAVG, "average", model=lambda a, b, total: total)
def average(lane: LaneInputs) -> Value:
    """The window's sum, which the affine lane scales."""
    return lane.total
