"""Evaluation of a part of a model by onnxruntime, on every possible input byte.

A chain of elementwise operators between bytes is a finite function. All its values come from onnxruntime instead of a
model of its kernels, so tables and constants are exact for every operator that onnxruntime implements.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.compiler.importer import Array, Model, to_bytes
from intloom.compiler.importer.model import TFLITE, OnnxNode
from intloom.compiler.litert import run_litert
from intloom.compiler.reference import open_session
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.arith import RoundingMode

Bytes = NDArray[np.int8]


def evaluate(part: Model, feeds: Mapping[str, Array], match: RoundingMode) -> list[Array]:
    """Outputs of `part`: in mode `ort` with onnxruntime's default optimizations, in mode `exact` without.

    Raises
    ------
    UnsupportedError
        The reference cannot evaluate the part.
    """
    if len(part.nodes) == 1 and part.nodes[0].domain == TFLITE:
        return evaluate_tflite(part.nodes[0], feeds)
    try:
        session = open_session(to_bytes(part), optimized=match is RoundingMode.ORT, threads=1)
        return [np.asarray(a) for a in session.run(None, dict(feeds))]
    except Exception as error:  # noqa: BLE001  # onnxruntime's exceptions have no other common base class
        text = " ".join(str(error).split())
        message = f"onnxruntime cannot evaluate {part.nodes[-1].name!r}: {text}"
        raise UnsupportedError(message, Refusal.OPERATOR.number) from None


def evaluate_tflite(node: OnnxNode, feeds: Mapping[str, Array]) -> list[Array]:
    """Results of LiteRT for an operator of a TFLite file, which defines them whatever the rounding mode is."""
    model, order = node.attributes["flatbuffer"], node.integers("order", ())
    assert isinstance(model, bytes)

    def turned(values: Array, by: tuple[int, ...]) -> Array:
        # A vector of bytes has no order of dimensions.
        return np.ascontiguousarray(values.transpose(by)) if values.ndim == len(by) else values

    back = tuple(order.index(i) for i in range(len(order)))
    results = run_litert(model, [turned(feeds[name], order) for name in node.inputs])
    return [turned(values, back) for values in results]


def to_stored(values: Bytes, unsigned: bool) -> Array:
    """Convert int8 values of the integer graph to the model's type."""
    return (values.astype(np.int16) + 128).astype(np.uint8) if unsigned else values


def to_int8(values: Array) -> Bytes:
    """Convert 8-bit values of the model to int8 values of the integer graph."""
    return (values.astype(np.int16) - 128).astype(np.int8) if values.dtype == np.uint8 else values.astype(np.int8)


def all_bytes() -> Bytes:
    """All 256 int8 values in table order: by `value & 0xFF`."""
    return np.arange(256, dtype=np.uint8).view(np.int8)
