"""Constants as the loader hands them out."""

from __future__ import annotations

from typing import Any

from intloom.hw.mac.constants import Piece
from intloom.hw.spec.arith import Affine


async def write_piece(ctx: Any, part: Any, piece: Piece, index: int, value: int) -> None:
    """A piece of the constants, for one cycle."""
    ctx.set(part.write.piece, piece)
    ctx.set(part.write.index, index)
    ctx.set(part.write.byte if piece is Piece.TABLE else part.write.word, value)
    await ctx.tick()
    ctx.set(part.write.piece, Piece.NONE)


async def write_law(ctx: Any, part: Any, law: Affine) -> None:
    """A residual's constants."""
    for index, word in enumerate((law.m1, law.m2, law.c, law.c >> 32)):
        await write_piece(ctx, part, Piece.RESIDUAL, index, word & 0xFFFFFFFF)
