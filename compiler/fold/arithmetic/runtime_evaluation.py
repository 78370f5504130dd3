"""Evaluates a part of a model on every possible input byte, by onnxruntime itself.

A chain of elementwise operators between bytes is a finite function. Asking the runtime for all its values, instead of
imitating its kernels, makes the resulting tables and constants right for every operator that the runtime has.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.compiler.importer import Array, Model, to_bytes
from intloom.compiler.reference import open_session
from intloom.hw.spec.arith import RoundingMode

Bytes = NDArray[np.int8]


def evaluate(part: Model, feeds: Mapping[str, Array], match: RoundingMode) -> list[Array]:
    """Outputs of `part`: in mode `ort` with the runtime's default optimizations, in mode `exact` node by node.

    Raises
    ------
    UnsupportedError
        The runtime does not take the part.
    """
    try:
        session = open_session(to_bytes(part), optimized=match is RoundingMode.ORT, threads=1)
        return [np.asarray(a) for a in session.run(None, dict(feeds))]
    except Exception as error:  # noqa: BLE001  # the runtime's exceptions share no other base class
        text = " ".join(str(error).split())
        raise UnsupportedError(f"onnxruntime cannot evaluate {part.nodes[-1].name!r}: {text[:300]}") from None


def to_stored(values: Bytes, unsigned: bool) -> Array:
    """int8 values of the integer graph as the model's own type stores them."""
    return (values.astype(np.int16) + 128).astype(np.uint8) if unsigned else values


def to_int8(values: Array) -> Bytes:
    """Bytes as the model stores them, as int8 values of the integer graph."""
    return (values.astype(np.int16) - 128).astype(np.int8) if values.dtype == np.uint8 else values.astype(np.int8)


def all_bytes() -> Bytes:
    """All 256 values, in the order in which a table holds their results: by `value & 0xFF`."""
    return np.arange(256, dtype=np.uint8).view(np.int8)
