"""The registry of schedules: for each integer operation, how it becomes stages and what the hardware must allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from intloom.common.registry import Registry
from intloom.compiler.ir import Node
from intloom.compiler.schedule.stage_list import StageList

Schedule = Callable[[StageList, Any], None]
"""Checks that the hardware can run a node, then adds its stages or copies."""

SCHEDULES: Registry[type[Any], Schedule] = Registry("a schedule")
schedules = SCHEDULES.register
"""Register the schedule of these node classes and of their subclasses without one."""


def schedule_of(kind: type[Node]) -> Schedule:
    """The schedule of a node class, or of its nearest base class that has one.

    Raises
    ------
    TypeError
        There is none. The package checks all operators when it is imported, so this is a fault of the source.
    """
    for base in kind.__mro__:
        if base in SCHEDULES:
            return SCHEDULES[base]
    raise TypeError(f"the operator {kind.__name__} must have a schedule: register one in compiler/schedule/operators")


def schedule(stages: StageList, node: Node) -> None:
    """Add a node's stages.

    Raises
    ------
    UnsupportedError
        No instruction can express the node on this hardware.
    """
    schedule_of(type(node))(stages, node)
