"""Elementwise operators with constants per channel: depthwise 1x1 convolutions, proved at all bytes of each channel.

Each channel is a function of one byte. Where it is a straight line, rounded and clamped, a weight, a bias and a scale
per channel implement it. Two lines that meet at zero, as of a PRelu, are the sum of two such parts. The search uses the
bounds that all 256 points set, and accepts constants only if the convolution returns the required byte at every point.
Where all constants miss a few bytes of a channel, as next to ties, further convolutions mark these bytes, and sums
correct them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.affine_fit import SUM, clamp_limits
from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes
from intloom.compiler.fold.arithmetic.tabulation import Int8s, clamp_table, evaluate_unit
from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.tokens import bind_tokens, read_tokens, token_results
from intloom.compiler.fold.patterns.elementwise import ELEMENTWISE
from intloom.compiler.fold.patterns.qparams import stored_constant, stored_value
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import Model, OnnxNode
from intloom.compiler.ir import Add, Conv, Node, Tensor
from intloom.compiler.ir.arithmetic import requantize
from intloom.compiler.ir.ops.conv import moving_conv
from intloom.compiler.refusals import Refusal
from intloom.hw.spec.arith import Affine, scale_from_float

_OPS = ELEMENTWISE | {"BatchNormalization"}
_WEIGHTS = (*range(127, 48, -1), 32, 16, 8, 4, 2, 1)
"""Candidate weights: large weights give the bias a fine resolution; small weights represent ties exactly."""
_MOST_TIES = 16
_MOST_MARKS = 4
"""Corrections by 1 of bytes of a channel; each costs a convolution and a sum."""
_MARK_STEP = 3
"""Distance of the codes of adjacent bytes: in a channel that marks one byte with 1 or -1, no other code is 1 or -1."""
_ROUNDS = 50
_LARGEST_BIAS = 1 << 30
_PROOF = "proved over 256 bytes of every channel"
Integers = NDArray[np.int64]
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
    shape = builder.shape(unit.output)
    if len(shape) == 2 and shape[0] > 1:
        _lower_rows(builder, unit, leaf, shape)
        return
    x, result = builder.image(leaf), builder.result(unit)
    if x.shape != shape:
        raise Refusal.BROADCAST(f"{leaf!r} of shape {x.shape} is broadcast", "expand it in the model")
    wanted = _every_byte_of_each_channel(builder, unit, leaf, len(shape), x.tensor.channels)
    node, target = _lowered(builder, unit, x.tensor, result, wanted)
    builder.finish(unit, node, result, target, _PROOF)


def _lower_rows(builder: GraphBuilder, unit: QuantizationUnit, leaf: str, shape: tuple[int, ...]) -> None:
    """Lower a unit over a matrix, as a BatchNormalization of tokens: its rows are pixels."""
    x = read_tokens(builder, unit, leaf)
    if x.operand.shape != shape or len(x.parts) > 1:
        raise Refusal.BROADCAST(f"{leaf!r} of shape {x.operand.shape} is broadcast", "expand it in the model")
    result = token_results(builder, unit, x, shape[1])
    wanted = _every_byte_of_each_channel(builder, unit, leaf, len(shape), shape[1])
    node, target = _lowered(builder, unit, x.parts[0], result.parts[0], wanted)
    builder.emit(replace(node, origin=unit.origins), result.parts[0])
    bind_tokens(builder, unit, result)
    builder.assign(unit, target, _PROOF)


def _lowered(
    builder: GraphBuilder, unit: QuantizationUnit, x: Tensor, result: Tensor, wanted: Int8s
) -> tuple[Node, Target]:
    """The node that computes the bytes `wanted` of each channel, and its target."""
    function, name = _Function(builder, x, clamp_table(builder, unit)), unit_name(unit)
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
    return node, target


@dataclass(frozen=True, eq=False)
class _Function:
    """Nodes that compute bytes of each channel from those of `x`; a table of the activation function follows."""

    builder: GraphBuilder
    x: Tensor
    clamps: Int8s | None

    def convolution(
        self, name: str, result: Tensor, wanted: Int8s, known: NDArray[np.bool_] | None = None
    ) -> Node | None:
        """The depthwise convolution to the bytes `wanted`, where they are `known`; None if a channel has none."""
        zero = result.zero_point
        least, most = clamp_limits(self.clamps)
        inside = slice(None) if known is None else known
        x, goal = all_bytes().astype(np.int64)[inside], wanted.astype(np.int64)[:, inside]
        constants = self._fit(Bounds(x, goal - zero, goal > least, goal < most), zero)
        if constants is None:
            return None
        node = Conv(
            name=name,
            inputs=(self.x.name,),
            output=result.name,
            weights=constants.weight.astype(np.int8).reshape(-1, 1, 1, 1),
            bias=constants.bias.astype(np.int32),
            mantissa=constants.mantissa.astype(np.uint32),
            shift=constants.shift.astype(np.uint8),
            zp_in=self.x.zero_point,
            zp_out=result.zero_point,
            group=self.x.channels,
            table=None if self.clamps is None else self.clamps.tobytes(),
        )
        return self._corrected(node, result, x, goal - self._computed(x, constants, zero))

    def _corrected(self, rough: Conv, result: Tensor, x: Integers, missing: Integers) -> Node:
        """The convolution, or the last of the sums that add what is missing: 1 or -1 at one byte of a channel each."""
        node: Node = rough
        every, number = np.arange(len(missing)), 0
        while missing.any():
            number += 1
            so_far = replace(result, name=f"{result.name}/rough{number}")
            self.builder.emit(replace(node, output=so_far.name), so_far)
            first = (missing != 0).argmax(axis=1)
            signs = np.sign(missing[every, first])
            mark = self._marks(f"{result.name}/mark{number}", x[first], signs)
            node = Add(name=rough.name, inputs=(so_far.name, mark), output=result.name, affine=SUM)
            missing[every, first] -= signs
        return node

    def _marks(self, name: str, marked: Integers, signs: Integers) -> str:
        """Emit a tensor that has the channel's sign at the marked byte, and is 0 elsewhere."""
        steps = np.where(signs, _MARK_STEP, 0)
        kept = np.where(np.abs(all_bytes()) == 1, all_bytes(), np.int8(0))
        node = moving_conv(name, self.x, steps.astype(np.int8).reshape(-1, 1, 1, 1), group=self.x.channels)
        bias = (signs - steps * marked).astype(np.int32)
        node = replace(node, bias=bias, zp_out=0, table=kept.tobytes())
        self.builder.emit(node, Tensor(name, self.x.shape, 1.0, 0, False))
        return name

    def _fit(self, bounds: "Bounds", zero: int) -> "_Constants | None":
        """Constants with which a convolution returns the bytes of every channel, or all but a few in some channels.

        None if a channel has none. The channels that have none yet try the next candidate at the same time.
        """
        if (_widest(bounds, _MOST_MARKS)[2] < -1).any():
            return None  # some channel is far from every line
        *lines, _ = _widest(bounds)
        fitted = _Constants(*np.zeros((4, len(bounds.goal)), np.int64))
        fewest = np.full(len(bounds.goal), _MOST_MARKS + 1)
        left = np.arange(len(bounds.goal))
        for weight, step in ((0, 0), *product(_WEIGHTS, (0, 1, -1))):
            channels = bounds.of(left)
            made, legal = _candidates(channels, [v[left] for v in lines], weight, step)
            wrong = np.where(legal, self._wrong(channels, made, zero), _MOST_MARKS + 1)
            better = wrong < fewest[left]
            for field, values in zip(fitted, made, strict=True):
                field[left[better]] = values[better]
            fewest[left[better]] = wrong[better]
            left = left[wrong > 0]
            if not left.size:
                break
        return fitted if fewest.max() <= _MOST_MARKS else None

    def _wrong(self, bounds: "Bounds", made: "_Constants", zero: int) -> Integers:
        """By how much a convolution misses the bytes of each channel, or more than is corrected."""
        goal = bounds.goal + zero
        sums = made.bias[:, None] + made.weight[:, None] * bounds.x
        factor = np.ldexp(made.mantissa.astype(np.float64), -made.shift)[:, None]
        rough = np.clip(np.rint(sums * factor) + zero, *clamp_limits(self.clamps))
        near = np.flatnonzero(np.count_nonzero(rough != goal, axis=1) <= _MOST_TIES)
        counts = np.full(len(goal), _MOST_MARKS + 1)
        computed = self._computed(bounds.x, _Constants(*(field[near] for field in made)), zero)
        counts[near] = np.abs(goal[near] - computed).sum(axis=1)
        return counts

    def _computed(self, x: Integers, made: "_Constants", zero: int) -> Integers:
        """The bytes that a convolution returns in each channel."""
        sums = made.bias[:, None] + made.weight[:, None] * x
        scales = made.mantissa.astype(np.uint32), made.shift.astype(np.uint8)
        results = requantize(sums.astype(np.int32), *scales, zero, self.builder.options.match)
        return (results if self.clamps is None else self.clamps[results.view(np.uint8)]).astype(np.int64)

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
        table = np.where(inside, all_bytes(), np.int8(x.zero_point))
        builder.emit(builder.table_node(limited_x.name, x.name, table, limited_x.name), limited_x)
        return replace(self, x=limited_x).convolution(part.name, part, rows, inside)


def _every_byte_of_each_channel(
    builder: GraphBuilder, unit: QuantizationUnit, leaf: str, rank: int, channels: int
) -> Int8s:
    """Results of onnxruntime for all 256 bytes in each channel: [channel, byte]."""
    grid = np.broadcast_to(all_bytes(), (channels, 256))
    # All bytes as one batch of rows, one sequence, or one image.
    forms = {2: (256, channels), 3: (1, channels, 256), 4: (1, channels, 16, 16)}
    shape = forms[rank]
    fed = np.ascontiguousarray(grid.T if len(shape) == 2 else grid).reshape(shape)
    made = evaluate_unit(builder, unit, leaf, fed)
    return made.T if len(shape) == 2 else made.reshape(channels, 256)


class _Constants(NamedTuple):
    """The constants of each channel."""

    weight: Integers
    bias: Integers
    mantissa: Integers
    shift: Integers


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds on a line in each channel; `goal`, `above` and `below` are [channel, point].

    The line is within half a step of `goal` at every `x`; points at a clamp bound it on one side only.
    """

    x: Integers
    goal: Integers
    above: NDArray[np.bool_]
    below: NDArray[np.bool_]

    def of(self, channels: Integers) -> "Bounds":
        """The bounds of some channels."""
        return Bounds(self.x, self.goal[channels], self.above[channels], self.below[channels])

    @property
    def inner(self) -> NDArray[np.bool_]:
        """The points that bound the line on both sides."""
        return self.above & self.below

    def secants(self, slack: float) -> tuple[Reals, Reals]:
        """Bounds on the slopes, from the first and last point that bound each line on both sides, or nearly do."""
        inner, every = self.inner, np.arange(len(self.goal))
        first = np.where(inner, self.x, 256).argmin(axis=1)
        last = np.where(inner, self.x, -256).argmax(axis=1)
        run, rise = self.x[last] - self.x[first], self.goal[every, last] - self.goal[every, first]
        known, run, reach = run > 0, np.maximum(run, 1), 1 + 2 * slack
        return np.where(known, (rise - reach) / run, -256.0), np.where(known, (rise + reach) / run, 256.0)

    def slopes_through(self, zeros: Reals) -> Reals:
        """The middles of the intervals of slopes of lines that are zero at `zeros`; NaN where they are empty."""
        run = self.x - zeros[:, None]
        ahead, behind = run > 0, run < 0
        with np.errstate(divide="ignore"):
            low, high = (self.goal - 0.5) / run, (self.goal + 0.5) / run
        least = np.maximum(_most(low, self.above & ahead), _most(high, self.below & behind))
        most = -np.maximum(_most(-high, self.below & ahead), _most(-low, self.above & behind))
        return np.where(least <= most, (least + most) / 2, np.nan)


def _most(values: Reals, where: NDArray[np.bool_]) -> Reals:
    """The largest value in each channel; at least -256."""
    return values.max(axis=1, initial=-256.0, where=where)


def _widest(bounds: Bounds, slack: float = 0) -> tuple[Reals, Reals, Reals]:
    """For each channel, the slope with the widest interval of constants, the middle of that interval, and its width.

    Lines may miss the bounds by `slack`.
    """
    x = bounds.x.astype(np.float64)
    least = np.where(bounds.above, bounds.goal - 0.5 - slack, -np.inf)
    most = np.where(bounds.below, bounds.goal + 0.5 + slack, np.inf)

    def ends(slopes: Reals) -> tuple[Reals, Reals]:
        rises = slopes[:, None] * x
        return (least - rises).max(axis=1, initial=-1e9), (most - rises).min(axis=1, initial=1e9)

    low, high = bounds.secants(slack)
    for _ in range(_ROUNDS):  # the width is a concave function of the slope
        one, two = low + (high - low) / 3, high - (high - low) / 3
        (one_least, one_most), (two_least, two_most) = ends(one), ends(two)
        wider = one_most - one_least < two_most - two_least
        low, high = np.where(wider, one, low), np.where(wider, high, two)
    slopes = (low + high) / 2
    bottom, top = ends(slopes)
    return slopes, (top + bottom) / 2, top - bottom


def _candidates(bounds: Bounds, lines: Sequence[Reals], weight: int, step: int) -> tuple[_Constants, NDArray[np.bool_]]:
    """Constants with this weight, or its opposite, for the line of each channel, and where there are some.

    Channels without a slope have only those of weight 0.
    """
    slopes, offsets = lines
    sloped = bounds.inner.any(axis=1)
    if weight == 0:
        bias = np.where(sloped, np.rint(np.clip(offsets, -256.0, 256.0)).astype(np.int64), bounds.goal[:, 0])
        return _constants(np.zeros_like(bias), bias, np.ones(len(bias))), np.ones(len(bias), np.bool_)
    signed = np.where(slopes > 0, weight, -weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        middles = signed * offsets / slopes
    legal = sloped & (np.abs(middles) <= _LARGEST_BIAS)
    bias = np.rint(np.where(legal, middles, 0.0)).astype(np.int64) + step
    exact = bounds.slopes_through(-bias / signed)
    factors = np.abs(np.where(np.isnan(exact) | (exact == 0), slopes, exact)) / weight
    return _constants(signed, bias, factors), legal


def _constants(weight: Integers, bias: Integers, factors: Reals) -> _Constants:
    different, inverse = np.unique(factors, return_inverse=True)
    scales = np.array([(s.mantissa, s.shift) for s in map(scale_from_float, different.tolist())], np.int64)
    return _Constants(weight, bias, *scales[inverse].T)
