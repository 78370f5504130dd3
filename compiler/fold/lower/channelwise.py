"""Elementwise cones with a constant for each channel: depthwise 1x1 convolutions, proved at all bytes of each channel.

Each channel is a function of one byte. Where it is a straight line, rounded and clamped, a weight, a bias and a scale
of the channel's own give it; they are found by the room that all 256 points leave, and kept only if the convolution's
law gives the wanted byte at every point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hw.spec.arith import Match, Scale, requantize, scale_from_float
from hw.spec.errors import EncodingError

from ...importer import Model, OnnxNode, ValueType
from ...ir import Conv
from ..bytewise import ELEMENTWISE, Int8s, clamp_table, vector_part
from ..lowering import Lowering, Operand, Refusal, Verdict, lowers, unit_name
from ..oracle import evaluate, every_byte, internal, stored
from ..qparams import DEQUANTIZE
from ..units import Unit

_OPS = ELEMENTWISE | {"BatchNormalization"}
_WEIGHTS = (*range(127, 48, -1), 32, 16, 8, 4, 2, 1)
"""Weights to try: large ones leave the bias fine steps, each other ones; small ones make ties exact."""
_MOST_TIES = 16
_ROUNDS = 50
_LARGEST_BIAS = 1 << 30
Reals = NDArray[np.float64]


def is_channelwise(low: Lowering, unit: Unit) -> bool:
    """Every operator of the cone works place by place, with constants that differ by channel, and no further."""
    shape = low.model.shape(unit.output)
    if shape is None or len(_tensor_leaves(low.model, unit)) != 1 or not all(n.op in _OPS for n in unit.cone):
        return False
    forms = [form for n in unit.cone for form in _wide_constants(low.model, n, len(shape))]
    return bool(forms) and all(form == (1, shape[1], *(1,) * (len(shape) - 2)) for form in forms)


def _tensor_leaves(model: Model, unit: Unit) -> list[str]:
    found = []
    for leaf in unit.leaves:
        node = model.producers.get(leaf)
        if node is None or node.op != DEQUANTIZE or node.inputs[0] not in model.constants:
            found.append(leaf)
    return found


def _wide_constants(model: Model, node: OnnxNode, rank: int) -> Iterator[tuple[int, ...]]:
    """Shapes, as they are broadcast to `rank`, of the node's constants of several values, quantised or not."""
    for value in node.inputs:
        maker = model.producers.get(value)
        array = model.constant(maker.inputs[0] if maker is not None and maker.op == DEQUANTIZE else value)
        if array is None or array.size == 1:
            continue
        if node.op == "BatchNormalization":
            yield (1, *array.shape, *(1,) * (rank - 2))
        else:
            yield (*(1,) * (rank - array.ndim), *array.shape)


@lowers("channelwise")
def lower_channelwise(low: Lowering, unit: Unit) -> None:
    """Lower a unit that is a function of one byte in each channel."""
    (leaf,) = _tensor_leaves(low.model, unit)
    x, result = low.image(leaf), low.result(unit)
    if x.shape != low.model.shape(unit.output):
        raise Refusal(f"{leaf!r} of shape {x.shape} is broadcast", "expand it in the model")
    wanted = _every_byte_of_each_channel(low, unit, leaf, x)
    clamps = clamp_table(low, unit)
    fitted = [_fit(row, result.zero_point, clamps, low.match) for row in wanted]
    if None in fitted:
        raise Refusal(
            f"channel {fitted.index(None)} is no straight line, or has ties that no integer constants follow",
            "use one constant for all channels, or change the scales a little",
        )
    laws = [f for f in fitted if f is not None]
    node = Conv(
        name=unit_name(unit),
        inputs=(x.tensor.name,),
        output=result.name,
        weights=np.array([w for w, _, _ in laws], dtype=np.int8).reshape(1, -1, 1, 1, 1),
        bias=np.array([b for _, b, _ in laws], dtype=np.int32),
        mantissa=np.array([s.mantissa for _, _, s in laws], dtype=np.uint32),
        shift=np.array([s.shift for _, _, s in laws], dtype=np.uint8),
        zp_in=x.tensor.zero_point,
        zp_out=result.zero_point,
        group=x.tensor.channels,
        table=None if clamps is None else clamps.tobytes(),
    )
    low.finish(unit, node, result, Verdict.ARRAY, "proved over 256 bytes of every channel")


def _every_byte_of_each_channel(low: Lowering, unit: Unit, leaf: str, x: Operand) -> Int8s:
    """What the runtime makes of all 256 bytes in each channel: [channel, byte]."""
    sources = [low.model.producers[v] for v in unit.leaves]
    source, channels = low.model.producers[leaf].inputs[0], x.tensor.channels
    grid = np.broadcast_to(every_byte(), (channels, 256))
    forms = {2: (256, channels), 3: (1, channels, 256), 4: (1, channels, 16, 16)}
    shape = forms[len(x.shape)]
    fed = np.ascontiguousarray(grid.T if len(shape) == 2 else grid).reshape(shape)
    kernel = unit.main.kernel if unit.main is not None and len(unit.cone) == 1 else None
    model = low.model if kernel is None else low.model.with_nodes((kernel,))
    part = vector_part(model, (*sources, *unit.nodes) if kernel is None else (kernel,), (source,), unit.output, 1)
    part = replace(part, types={**part.types, source: ValueType(low.model.dtype(source), shape)})
    made = internal(evaluate(part, {source: stored(fed, x.tensor.unsigned)}, low.match)[0])
    return made.T if len(shape) == 2 else made.reshape(channels, 256)


def _fit(wanted: Int8s, zero: int, clamps: Int8s | None, match: Match) -> tuple[int, int, Scale] | None:
    """Weight, bias and scale with which a convolution gives a channel's bytes, or None where there are none."""
    x, goal = every_byte().astype(np.int64), wanted.astype(np.int64)
    least, most = (-128, 127) if clamps is None else (int(clamps.min()), int(clamps.max()))
    inner = (goal > least) & (goal < most)
    if not inner.any():
        laws: Iterator[tuple[int, int, Scale]] = iter(((0, int(goal[0]) - zero, scale_from_float(1.0)),))
    else:
        laws = _laws(*_widest(x, goal - zero, goal > least, goal < most))
    for weight, bias, scale in laws:
        sums = bias + weight * x
        rough = np.clip(np.rint(sums * (scale.mantissa * 2.0**-scale.shift)) + zero, least, most)
        if np.count_nonzero(rough != goal) > _MOST_TIES:
            continue
        made = np.array([requantize(int(s), scale, zero, match) for s in sums], dtype=np.int64)
        if np.array_equal(made if clamps is None else clamps[made & 0xFF].astype(np.int64), goal):
            return weight, bias, scale
    return None


def _widest(
    x: NDArray[np.int64], goal: NDArray[np.int64], above: NDArray[np.bool_], below: NDArray[np.bool_]
) -> tuple[float, float]:
    """The slope that leaves the constant most room between the bounds of all points, and the middle of that room."""

    def room(slope: float) -> tuple[float, float]:
        least = (goal - 0.5 - slope * x)[above].max(initial=-1e9)
        most = (goal + 0.5 - slope * x)[below].min(initial=1e9)
        return float(most - least), float(most + least) / 2

    low, high = -256.0, 256.0
    for _ in range(_ROUNDS * 2):  # the room is concave in the slope
        one, two = low + (high - low) / 3, high - (high - low) / 3
        if room(one)[0] < room(two)[0]:
            low = one
        else:
            high = two
    slope = (low + high) / 2
    return slope, room(slope)[1]


def _laws(slope: float, offset: float) -> Iterator[tuple[int, int, Scale]]:
    """Weights, biases and scales that come near a line; first that of a constant."""
    yield 0, round(max(-256.0, min(256.0, offset))), scale_from_float(1.0)
    for weight in _WEIGHTS:
        try:
            scale = scale_from_float(float(np.float32(abs(slope) / weight)))
        except EncodingError:
            continue
        sign = weight if slope > 0 else -weight
        middle = offset / (scale.mantissa * 2.0**-scale.shift)
        if abs(middle) < _LARGEST_BIAS:
            for step in (0, 1, -1):
                yield sign, round(middle) + step, scale
