"""A function of one byte."""

from __future__ import annotations

from collections.abc import Sequence

from intloom.compiler.ir import Table
from intloom.sim.golden.registry import Context, Image, golden, through


@golden(Table)
def table(node: Table, operands: Sequence[Image], context: Context) -> Image:
    """`table[x & 0xFF]`."""
    return through(node.table, operands[0])
