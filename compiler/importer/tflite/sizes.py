"""Sizes that a file computes from the shapes of its tensors. They are constants, because every shape is known."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import FileFormatError, UnsupportedError
from intloom.compiler.importer.tflite.file import ELEMENTS, TfliteFile, TfliteOperator, TfliteTensor
from intloom.compiler.importer.tflite.writer import write_tflite
from intloom.compiler.litert import run_litert

_MAX_VALUES = 64
_OPERATORS = frozenset(
    {"ADD", "CAST", "CONCATENATION", "GATHER", "MUL", "PACK", "RESHAPE", "SLICE", "STRIDED_SLICE", "SUB"}
)


def fold_sizes(file: TfliteFile) -> TfliteFile:
    """The file with constants for sizes, and with the shapes that they give to the results of RESHAPE.

    A converter states the size 1 for each dimension of such a result that it does not know.
    """
    if not any(op.code == "SHAPE" for op in file.operators):
        return file
    tensors, kept = list(file.tensors), list[TfliteOperator]()
    for op in file.operators:
        at = op.outputs[0]
        if at not in file.outputs and _computes_sizes(tensors, op):
            if op.code == "SHAPE":
                data = np.array(tensors[op.inputs[0]].shape, ELEMENTS[tensors[at].dtype])
            else:
                data = _computed(file.name, tensors, op)
            tensors[at] = replace(tensors[at], data=data, shape=data.shape)
            continue
        if op.code == "RESHAPE" and len(op.inputs) > 1 and tensors[op.inputs[1]].data is not None:
            tensors[at] = replace(tensors[at], shape=_reshaped(file.name, tensors, op))
        kept.append(op)
    return replace(file, tensors=tuple(tensors), operators=tuple(kept))


def _computes_sizes(tensors: Sequence[TfliteTensor], op: TfliteOperator) -> bool:
    if len(op.outputs) != 1 or tensors[op.outputs[0]].dtype not in ("INT32", "INT64"):
        return False
    operands = [tensors[i].data if tensors[i].dtype in ("INT32", "INT64") else None for i in op.inputs if i >= 0]
    known = bool(operands) and all(data is not None and data.size <= _MAX_VALUES for data in operands)
    return (op.code == "SHAPE" and len(op.inputs) == 1) or (op.code in _OPERATORS and known)


def _computed(name: str, tensors: Sequence[TfliteTensor], op: TfliteOperator) -> NDArray[Any]:
    try:
        (data,) = run_litert(write_tflite(tensors, [op], (), op.outputs), ())
    except UnsupportedError as error:
        raise FileFormatError(f"{name}: the sizes that {op.label} computes are wrong: {error}") from None
    return data


def _reshaped(name: str, tensors: Sequence[TfliteTensor], op: TfliteOperator) -> tuple[int, ...]:
    """The shape of a result, of which one size may be stated as -1: what is left."""
    x, sizes = tensors[op.inputs[0]], tensors[op.inputs[1]].data
    assert sizes is not None
    shape = [int(n) for n in sizes.ravel()]
    rest = prod(n for n in shape if n != -1)
    if shape.count(-1) == 1 and rest > 0:
        shape[shape.index(-1)] = prod(x.shape) // rest
    if min(shape, default=1) < 0 or prod(shape) != prod(x.shape):
        raise FileFormatError(f"{name}: {op.label} must keep {prod(x.shape)} values, not reshape to {shape}")
    return tuple(shape)
