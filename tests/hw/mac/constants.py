"""Stimulus for components that store constants."""

from typing import Any

from intloom.hw.mac.weights.constants_loader import ConstantKind
from intloom.hw.spec.arith import Affine


async def write_constant(ctx: Any, part: Any, kind: ConstantKind, index: int, value: int) -> None:
    """Write one element for one cycle."""
    ctx.set(part.write.kind, kind)
    ctx.set(part.write.index, index)
    ctx.set(part.write.byte if kind is ConstantKind.TABLE else part.write.word, value)
    await ctx.tick()
    ctx.set(part.write.kind, ConstantKind.NONE)


async def write_affine(ctx: Any, part: Any, affine: Affine) -> None:
    """Write the residual constants of an affine operation."""
    for index, word in enumerate((affine.m1, affine.m2, affine.c, affine.c >> 32)):
        await write_constant(ctx, part, ConstantKind.RESIDUAL, index, word & 0xFFFFFFFF)
