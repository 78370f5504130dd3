"""The registry of schedules: for each integer operation, how it becomes stages and what the hardware must allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from intloom.common.registry import Registry
from intloom.compiler.ir import Node
from intloom.compiler.schedule.limits import unsupported
from intloom.compiler.schedule.stage_list import StageList

Schedule = Callable[[StageList, Any], None]
"""Checks that the hardware can run a node, then adds its stages or copies."""

SCHEDULES: Registry[type[Node], Schedule] = Registry("a schedule")
schedules = SCHEDULES.register
"""Register the schedule of these node classes."""


def schedule(stages: StageList, node: Node) -> None:
    """Add a node's stages.

    Raises
    ------
    UnsupportedError
        No instruction can express the node on this hardware.
    """
    if type(node) not in SCHEDULES:
        raise unsupported(node, "it has no schedule", "run it on the host")
    SCHEDULES[type(node)](stages, node)
