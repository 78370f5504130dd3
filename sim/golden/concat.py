"""Concatenation along channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intloom.compiler.ir import Concat
from intloom.sim.golden.registry import Context, Image, golden


@golden(Concat)
def concat(node: Concat, operands: Sequence[Image], context: Context) -> Image:
    """The operands' channels, one after the other."""
    return np.concatenate(list(operands), axis=0)
