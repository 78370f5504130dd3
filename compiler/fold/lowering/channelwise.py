"""Elementwise operators with constants per channel: depthwise 1x1 convolutions, proved at all bytes of each channel.

Each channel is a function of one byte. Where it is a straight line, rounded and clamped, a weight, a bias and a scale
per channel implement it. Two lines that meet at zero, as of a PRelu, are the sum of two such parts. The search uses the
bounds that all 256 points set, and accepts constants only if the convolution returns the required byte at every point.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import EncodingError
from intloom.compiler.fold.arithmetic.affine_fit import clamp_limits
from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes
from intloom.compiler.fold.arithmetic.tabulation import Int8s, clamp_table, evaluate_unit
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.patterns.elementwise import ELEMENTWISE
from intloom.compiler.fold.patterns.qparams import stored_constant, stored_value
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import Model, OnnxNode
from intloom.compiler.ir import Add, Conv, Node, Tensor
from intloom.compiler.ir.arithmetic import requantize
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.arith import Affine, Scale, scale_from_float

_OPS = ELEMENTWISE | {"BatchNormalization"}
_WEIGHTS = (*range(127, 48, -1), 32, 16, 8, 4, 2, 1)
"""Candidate weights: large weights give the bias a fine resolution; small weights represent ties exactly."""
_MOST_TIES = 16
_ROUNDS = 50
_LARGEST_BIAS = 1 << 30
Reals = NDArray[np.float64]


def is_channelwise_unit(builder: GraphBuilder, unit: QuantizationUnit) -> bool:
    """Whether every operator of the unit is elementwise, with constants that differ between channels only."""
    shape = builder.model.shape(unit.output)
    if shape is None or len(_tensor_leaves(builder.model, unit)) != 1 or not all(n.op in _OPS for n in unit.operators):
        return False
    forms = [form for n in unit.operators for form in _wide_constants(builder.model, n, len(shape))]
    return bool(forms) and all(form == (1, shape[1], *(1,) * (len(shape) - 2)) for form in forms)


def _tensor_leaves(model: Model, unit: QuantizationUnit) -> list[str]:
    return [leaf for leaf in unit.leaves if stored_constant(model, leaf) is None]


def _wide_constants(model: Model, node: OnnxNode, rank: int) -> Iterator[tuple[int, ...]]:
    """Shapes, broadcast to `rank`, of the node's constants with several values, quantized or not."""
    for value in node.inputs:
        array = model.constant(stored_value(model, value))
        if array is None or array.size == 1:
            continue
        if node.op == "BatchNormalization":
            yield (1, *array.shape, *(1,) * (rank - 2))
        else:
            yield (*(1,) * (rank - array.ndim), *array.shape)


def lower_channelwise(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a unit that is a function of one byte in each channel."""
    (leaf,) = _tensor_leaves(builder.model, unit)
    x, result = builder.image(leaf), builder.result(unit)
    if x.shape != builder.model.shape(unit.output):
        raise Refusal.BROADCAST(f"{leaf!r} of shape {x.shape} is broadcast", "expand it in the model")
    wanted = _every_byte_of_each_channel(builder, unit, leaf, x)
    function, name = _Function(builder, x.tensor, clamp_table(builder, unit)), unit_name(unit)
    node: Node | None = function.convolution(name, result, wanted)
    target = Target.ARRAY
    if node is None:
        node, target = function.two_lines(name, result, wanted), Target.VECTOR
    if node is None:
        raise Refusal.NO_INTEGERS(
            "a channel is neither a straight line nor two that meet at zero, or has rounding ties that no constants "
            "reproduce",
            "use one constant for all channels, or change the scales slightly",
        )
    builder.finish(unit, node, result, target, "proved over 256 bytes of every channel")


@dataclass(frozen=True, eq=False)
class _Function:
    """Nodes that compute bytes of each channel from those of `x`; a table of the activation function follows."""

    builder: GraphBuilder
    x: Tensor
    clamps: Int8s | None

    def convolution(
        self, name: str, result: Tensor, wanted: Int8s, known: NDArray[np.bool_] | None = None
    ) -> Conv | None:
        """The depthwise convolution to the bytes `wanted`, where they are `known`; None if a channel has none."""
        fitted = []
        zero = result.zero_point
        least, most = clamp_limits(self.clamps)
        inside = slice(None) if known is None else known
        x, goals = all_bytes().astype(np.int64)[inside], wanted.astype(np.int64)[:, inside]
        bounds = [Bounds(x, goal - zero, goal > least, goal < most) for goal in goals]
        for channel, line in zip(bounds, _widest(bounds), strict=True):
            constants = self._fit(channel, line, zero)
            if constants is None:
                return None
            fitted.append(constants)
        return Conv(
            name=name,
            inputs=(self.x.name,),
            output=result.name,
            weights=np.array([w for w, _, _ in fitted], dtype=np.int8).reshape(-1, 1, 1, 1),
            bias=np.array([b for _, b, _ in fitted], dtype=np.int32),
            mantissa=np.array([s.mantissa for _, _, s in fitted], dtype=np.uint32),
            shift=np.array([s.shift for _, _, s in fitted], dtype=np.uint8),
            zp_in=self.x.zero_point,
            zp_out=result.zero_point,
            group=self.x.channels,
            table=None if self.clamps is None else self.clamps.tobytes(),
        )

    def _fit(self, bounds: "Bounds", line: tuple[float, float], zero: int) -> tuple[int, int, Scale] | None:
        """Weight, bias and scale with which a convolution returns a channel's bytes, or None if none are found."""
        x, goal, clamps, match = bounds.x, bounds.goal + zero, self.clamps, self.builder.options.match
        limits = clamp_limits(clamps)
        candidates: Iterator[tuple[int, int, Scale]]
        if (bounds.above & bounds.below).any():
            candidates = _candidates(bounds, *line)
        else:
            candidates = iter(((0, int(bounds.goal[0]), scale_from_float(1.0)),))
        for weight, bias, scale in candidates:
            sums = bias + weight * x
            rough = np.clip(np.rint(sums * (scale.mantissa * 2.0**-scale.shift)) + zero, *limits)
            if np.count_nonzero(rough != goal) > _MOST_TIES:
                continue
            mantissa, shift = np.array([scale.mantissa], dtype=np.uint32), np.array([scale.shift], dtype=np.uint8)
            made = requantize(sums[None].astype(np.int32), mantissa, shift, zero, match)[0].astype(np.int64)
            if np.array_equal(made if clamps is None else clamps[made & 0xFF].astype(np.int64), goal):
                return weight, bias, scale
        return None

    def two_lines(self, name: str, result: Tensor, wanted: Int8s) -> Add | None:
        """A sum of what is below zero and what is above, as of a PRelu; None if a part is no line in some channel.

        One of the two parts is the value at zero for every byte, so the sum without this value is exact.
        """
        zero = self.x.zero_point
        middle = int(wanted[0, zero & 0xFF])
        if (wanted[:, zero & 0xFF] != middle).any():
            return None
        undo, parts = self.builder.checkpoint(), []
        for side, inside in (("below", all_bytes() <= zero), ("above", all_bytes() >= zero)):
            part = replace(result, name=f"{result.name}/{side}")
            node = self._part(part, np.where(inside, wanted, np.int8(middle)), inside, middle)
            if node is None:
                undo()
                return None
            self.builder.emit(node, part)
            parts.append(part.name)
        return Add(name=name, inputs=tuple(parts), output=result.name, affine=Affine(1, 1, -middle, 0))

    def _part(self, part: Tensor, rows: Int8s, inside: NDArray[np.bool_], middle: int) -> Node | None:
        """The bytes `rows`, which are `middle` outside of some bytes: a table, or lines that end there."""
        builder, x = self.builder, self.x
        if (rows == rows[0]).all():
            return builder.table_node(part.name, x.name, rows[0], part.name)
        every = all_bytes() if self.clamps is None else self.clamps
        for ends, limited in (((rows <= middle).all(), np.minimum), ((rows >= middle).all(), np.maximum)):
            if ends:
                return replace(self, clamps=limited(every, np.int8(middle))).convolution(part.name, part, rows)
        # Slopes of both signs: the operand ends at zero, and the lines beyond it do not matter.
        limited_x = replace(x, name=f"{part.name}/operand")
        node = replace(self, x=limited_x).convolution(part.name, part, rows, inside)
        if node is not None:
            table = np.where(inside, all_bytes(), np.int8(x.zero_point))
            builder.emit(builder.table_node(limited_x.name, x.name, table, limited_x.name), limited_x)
        return node


def _every_byte_of_each_channel(builder: GraphBuilder, unit: QuantizationUnit, leaf: str, x: Operand) -> Int8s:
    """Results of onnxruntime for all 256 bytes in each channel: [channel, byte]."""
    channels = x.tensor.channels
    grid = np.broadcast_to(all_bytes(), (channels, 256))
    # All bytes as one batch of rows, one sequence, or one image.
    forms = {2: (256, channels), 3: (1, channels, 256), 4: (1, channels, 16, 16)}
    shape = forms[len(x.shape)]
    fed = np.ascontiguousarray(grid.T if len(shape) == 2 else grid).reshape(shape)
    made = evaluate_unit(builder, unit, leaf, fed)
    return made.T if len(shape) == 2 else made.reshape(channels, 256)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds on a line: within half a step of `goal` at every `x`; points at a clamp bound it on one side only."""

    x: NDArray[np.int64]
    goal: NDArray[np.int64]
    above: NDArray[np.bool_]
    below: NDArray[np.bool_]

    def secant(self) -> tuple[float, float]:
        """Bounds on the slope, from the first and last point that bound the line on both sides."""
        inner = np.flatnonzero(self.above & self.below)
        if inner.size < 2:
            return -256.0, 256.0
        first, last = inner[self.x[inner].argmin()], inner[self.x[inner].argmax()]
        run, rise = int(self.x[last] - self.x[first]), int(self.goal[last] - self.goal[first])
        return (rise - 1) / run, (rise + 1) / run

    def slope_through(self, zero: float) -> float | None:
        """The middle of the interval of slopes of lines that are zero at `zero`; None if it is empty."""
        run = self.x - zero
        ahead, behind = run > 0, run < 0
        with np.errstate(divide="ignore"):
            low, high = (self.goal - 0.5) / run, (self.goal + 0.5) / run
        least = max(low[self.above & ahead].max(initial=-256.0), high[self.below & behind].max(initial=-256.0))
        most = min(high[self.below & ahead].min(initial=256.0), low[self.above & behind].min(initial=256.0))
        return float(least + most) / 2 if least <= most else None


def _widest(channels: Sequence[Bounds]) -> list[tuple[float, float]]:
    """For each channel, the slope with the widest interval of constants, and the middle of that interval."""
    x = channels[0].x.astype(np.float64)
    least = np.array([np.where(c.above, c.goal - 0.5, -np.inf) for c in channels])
    most = np.array([np.where(c.below, c.goal + 0.5, np.inf) for c in channels])

    def ends(slopes: Reals) -> tuple[Reals, Reals]:
        rises = slopes[:, None] * x
        return (least - rises).max(axis=1, initial=-1e9), (most - rises).min(axis=1, initial=1e9)

    low, high = np.array([c.secant() for c in channels]).T
    for _ in range(_ROUNDS):  # the width is a concave function of the slope
        one, two = low + (high - low) / 3, high - (high - low) / 3
        (one_least, one_most), (two_least, two_most) = ends(one), ends(two)
        wider = one_most - one_least < two_most - two_least
        low, high = np.where(wider, one, low), np.where(wider, high, two)
    slopes = (low + high) / 2
    bottom, top = ends(slopes)
    return list(zip(slopes.tolist(), ((top + bottom) / 2).tolist(), strict=True))


def _candidates(bounds: Bounds, slope: float, offset: float) -> Iterator[tuple[int, int, Scale]]:
    """Candidate weights, biases and scales for a line, that of a constant first."""
    yield 0, round(max(-256.0, min(256.0, offset))), scale_from_float(1.0)
    for weight in _WEIGHTS:
        sign = weight if slope > 0 else -weight
        middle = sign * offset / slope if slope else np.inf
        if abs(middle) > _LARGEST_BIAS:
            continue
        for step in (0, 1, -1):
            bias = round(middle) + step
            exact = bounds.slope_through(-bias / sign)
            try:
                scale = scale_from_float(abs(exact or slope) / weight)
            except EncodingError:
                continue
            yield sign, bias, scale
