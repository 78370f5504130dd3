"""Constant tensors."""

from __future__ import annotations

from collections.abc import Sequence

from intloom.compiler.ir.ops.constant import Constant
from intloom.sim.golden.registry import Context, Image, golden


@golden(Constant)
def constant(node: Constant, operands: Sequence[Image], context: Context) -> Image:
    """Its values."""
    return node.values
