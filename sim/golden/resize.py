"""Nearest-neighbor enlargement."""

from __future__ import annotations

from collections.abc import Sequence

from intloom.compiler.ir import Resize
from intloom.sim.golden.registry import Context, Image, golden


@golden(Resize)
def resize(node: Resize, operands: Sequence[Image], context: Context) -> Image:
    """Output (y, x) is input (y // factor_h, x // factor_w)."""
    return operands[0].repeat(node.factors[0], axis=1).repeat(node.factors[1], axis=2)
