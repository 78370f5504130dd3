"""A time slot of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from intloom.compiler.schedule.geometry import Buffer
from intloom.compiler.schedule.local_buffer import LocalBuffer
from intloom.compiler.schedule.stage import Stage
from intloom.compiler.schedule.stripes import Stripes
from intloom.compiler.schedule.tiling import Tiling


@dataclass(eq=False)
class Slot:
    """One stage, or several in stripes, and the buffers that are in the scratchpad meanwhile."""

    index: int
    stages: Sequence[Stage]
    stripes: Stripes | None
    resident_weights: bool
    local: dict[Buffer, LocalBuffer] = field(default_factory=dict)
    tiling: Tiling | None = None
    low: int = 0
    """First scratchpad word that no buffer of the slot uses."""
