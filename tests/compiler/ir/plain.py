"""Every operator in plain Python integers: one value of the result at a time, straight from the definition."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from intloom.compiler.ir import (
    Add,
    AvgPool,
    Concat,
    Constant,
    Conv,
    ConvTranspose,
    MatMul,
    MaxPool,
    Mul,
    Node,
    Norm,
    Resize,
    Slice,
    Softmax,
    Table,
)
from intloom.hw.spec import arith
from intloom.hw.spec.arith import RoundingMode, Scale
from intloom.hw.spec.norm import normalize
from intloom.hw.spec.softmax import softmax, unpack_exponentials

Values = list[list[list[int]]]
"""[channel][row][column]."""
At = tuple[int, int, int]
Plain = Callable[[Any, Sequence[Values], At, RoundingMode], int]


def _tabled(node: Any, value: int) -> int:
    return value if node.table is None else arith.wrap(node.table[value & 0xFF], 8)


def _finished(node: Any, total: int, scale: Scale, match: RoundingMode) -> int:
    return _tabled(node, arith.requantize(arith.wrap(total, 32), scale, node.zp_out, match))


def _at(x: Values, channel: int, row: int, column: int, outside: int | None) -> int | None:
    inside = 0 <= row < len(x[0]) and 0 <= column < len(x[0][0])
    return x[channel][row][column] if inside else outside


def _channel(node: Conv, at: At, match: RoundingMode, total: int) -> int:
    scale = Scale(int(node.mantissa[at[0]]), int(node.shift[at[0]]))
    return _finished(node, total + int(node.bias[at[0]]), scale, match)


def conv(node: Conv, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    m, oy, ox = at
    channels, taps = node.weights.shape[1], node.weights.shape[2:]
    first, total = m // (len(node.weights) // node.group) * channels, 0
    for c, ky, kx in product(range(channels), range(taps[0]), range(taps[1])):
        y = oy * node.strides[0] + ky * node.dilations[0] - node.pads[0]
        x = ox * node.strides[1] + kx * node.dilations[1] - node.pads[1]
        total += _at(operands[0], first + c, y, x, node.zp_in) * int(node.weights[m, c, ky, kx])
    return _channel(node, at, match, total)


def conv_transpose(node: ConvTranspose, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    m, oy, ox = at
    channels, taps = node.weights.shape[1], node.weights.shape[2:]
    first, total = m // (len(node.weights) // node.group) * channels, 0
    for c, ky, kx in product(range(channels), range(taps[0]), range(taps[1])):
        y, off_y = divmod(oy + node.pads[0] - ky * node.dilations[0], node.strides[0])
        x, off_x = divmod(ox + node.pads[1] - kx * node.dilations[1], node.strides[1])
        if not off_y and not off_x:
            value = _at(operands[0], first + c, y, x, node.zp_in)
            total += (value - node.zp_in) * int(node.weights[m, c, ky, kx])
    return _channel(node, at, match, total)


def matmul(node: MatMul, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    (a, b), (n, y, x) = operands, at
    row, column = divmod(n, len(b[0][0]))
    total = sum((p[y][x] - node.zp_a) * (q[row][column] - node.zp_b) for p, q in zip(a, b, strict=True))
    return _finished(node, total, Scale(node.mantissa, node.shift), match)


def _pair(operands: Sequence[Values], at: At) -> tuple[int, int]:
    c, y, x = at
    a, b = ((v[c][0][0] if len(v[c]) * len(v[c][0]) == 1 else v[c][y][x]) for v in operands)
    return a, b


def add(node: Add, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    return _tabled(node, arith.add(*_pair(operands, at), node.affine))


def mul(node: Mul, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    return _tabled(node, arith.multiply(*_pair(operands, at), node.zero_a, node.zero_b, node.affine))


def _window(node: MaxPool | AvgPool, x: Values, at: At, outside: int | None) -> list[int]:
    c, oy, ox = at
    y, x0 = oy * node.strides[0] - node.pads[0], ox * node.strides[1] - node.pads[1]
    taps = product(range(node.kernel[0]), range(node.kernel[1]))
    values = [_at(x, c, y + ky, x0 + kx, outside) for ky, kx in taps]
    return [v for v in values if v is not None]


def max_pool(node: MaxPool, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    return max(_window(node, operands[0], at, None), default=-128)


def avg_pool(node: AvgPool, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    return _tabled(node, arith.average(sum(_window(node, operands[0], at, node.zp_in)), node.affine))


def resize(node: Resize, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    return operands[0][at[0]][at[1] // node.factors[0]][at[2] // node.factors[1]]


def slices(node: Slice, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    return operands[0][node.start + at[0]][at[1]][at[2]]


def concat(node: Concat, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    return [channel for x in operands for channel in x][at[0]][at[1]][at[2]]


def table(node: Table, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    return _tabled(node, operands[0][at[0]][at[1]][at[2]])


def constant(node: Constant, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    return int(node.values[at])


def softmax_value(node: Softmax, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    pixel = [channel[at[1]][at[2]] for channel in operands[0]]
    return softmax(pixel, unpack_exponentials(node.exponentials), node.less, node.zp_out)[at[0]]


def norm_value(node: Norm, operands: Sequence[Values], at: At, match: RoundingMode) -> int:
    pixel = [channel[at[1]][at[2]] for channel in operands[0]]
    constants = list(zip(node.gamma.tolist(), node.beta.tolist(), strict=True))
    return normalize(pixel, constants, node.center, node.zp_in, node.epsilon)[at[0]]


PLAIN: Mapping[type[Node], Plain] = {
    Add: add,
    AvgPool: avg_pool,
    Concat: concat,
    Constant: constant,
    Conv: conv,
    ConvTranspose: conv_transpose,
    MatMul: matmul,
    MaxPool: max_pool,
    Mul: mul,
    Norm: norm_value,
    Resize: resize,
    Slice: slices,
    Softmax: softmax_value,
    Table: table,
}
