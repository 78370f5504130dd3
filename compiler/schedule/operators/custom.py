"""User-defined operations."""

from __future__ import annotations

from intloom.compiler.ir import Custom
from intloom.compiler.schedule.limits import unsupported
from intloom.compiler.schedule.operators.registry import schedules
from intloom.compiler.schedule.stage_list import StageList


@schedules(Custom)
def schedule_custom(stages: StageList, node: Custom) -> None:
    """None: a custom operation runs on the accelerator only if the front end lowers it to other operations."""
    raise unsupported(node, f"{node.domain}::{node.op} has no lowering", "register one, or run it on the host")
