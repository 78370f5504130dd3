"""The integers of a Softmax: a table of exponentials, and the result that stands for 1.

onnxruntime's kernel for 8-bit tensors takes exponentials from a table of 256 floats, adds them in order, and divides.
Its float sums depend on the order, which hardware with several lanes would have to follow. The integer Softmax has
integer exponentials and exact sums. With n values, an exponential of 1 is `one = min(2^24 - 1, (2^32 - 1) // n)`, and
each exponential is correctly rounded, on every machine. `hw.spec.softmax.error_bound` bounds the distance to the real
result; it is below 1 up to `MOST_VALUES` values. The float sums of onnxruntime add a relative error of at most
`n * 2^-24`.
"""

import math
from decimal import Context, Decimal

import numpy as np

from intloom.compiler.importer import Model, OnnxNode
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.softmax import MOST_LESS, largest_exponential

OVER_WHOLE_REST = 12
"""Up to this opset, Softmax normalizes over all axes from `axis` to the last."""
MOST_VALUES = 4000
"""Most values of a Softmax."""
_FULL = 256
_DIGITS = Context(prec=40)


def softmax_axis(model: Model, node: OnnxNode) -> int:
    """The axis that a Softmax normalizes over; -1 if there are several."""
    shape = model.shape(node.input(0)) or ()
    # A QLinearSoftmax names the opset whose Softmax it computes.
    opset = (node.qoperator or node).integer("opset", model.opset)
    whole = opset <= OVER_WHOLE_REST
    axis = node.integer("axis", 1 if whole else -1) % max(1, len(shape))
    return -1 if whole and any(size > 1 for size in shape[axis + 1 :]) else axis


def is_pair(model: Model, node: OnnxNode) -> bool:
    """Whether a Softmax is over two channels, which needs no division."""
    shape = model.shape(node.input(0)) or ()
    return len(shape) >= 2 and shape[1] == 2 and softmax_axis(model, node) == 1


def exponentials(scale: float, count: int) -> list[int]:
    """The exponential of each distance from the largest value, from 255 down to 0, for `count` values."""
    one, step = largest_exponential(count), Decimal(float(np.float32(scale)))
    return [round(one * _DIGITS.exp(_DIGITS.multiply(k - 255, step))) for k in range(TABLE_BYTES)]


def full_result(scale: float) -> int | None:
    """The result that stands for 1, as onnxruntime computes it; None if the instruction cannot express it."""
    if scale <= 0:
        return None
    full = math.floor(np.float32(1) / np.float32(scale))
    return full if _FULL - MOST_LESS <= full <= _FULL else None
