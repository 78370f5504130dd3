"""The registry of schedules: for each integer operation, how it becomes stages and what the hardware must allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from intloom.compiler.ir import Node
from intloom.compiler.schedule.limits import unsupported
from intloom.compiler.schedule.stage_list import StageList

Schedule = Callable[[StageList, Any], None]
"""Checks that the hardware can run a node, then adds its stages or copies."""

_SCHEDULES: dict[type[Node], Schedule] = {}


def schedules(*kinds: type[Node]) -> Callable[[Schedule], Schedule]:
    """Register the schedule of these node classes."""

    def register(schedule: Schedule) -> Schedule:
        for kind in kinds:
            if kind in _SCHEDULES:
                raise ValueError(f"{kind.__name__} already has a schedule")
            _SCHEDULES[kind] = schedule
        return schedule

    return register


def scheduled_kinds() -> frozenset[type[Node]]:
    """All node classes that have a schedule."""
    return frozenset(_SCHEDULES)


def schedule(stages: StageList, node: Node) -> None:
    """Add a node's stages.

    Raises
    ------
    UnsupportedError
        No instruction can express the node on this hardware.
    """
    if type(node) not in _SCHEDULES:
        raise unsupported(node, "it has no schedule", "run it on the host")
    _SCHEDULES[type(node)](stages, node)
