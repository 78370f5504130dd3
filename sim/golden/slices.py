"""A range of channels."""

from __future__ import annotations

from collections.abc import Sequence

from intloom.compiler.ir import Slice
from intloom.sim.golden.registry import Context, Image, golden


@golden(Slice)
def slices(node: Slice, operands: Sequence[Image], context: Context) -> Image:
    """Channels `start` to `stop`."""
    return operands[0][node.start : node.stop]
