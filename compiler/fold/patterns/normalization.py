"""Normalizations by statistics of the values themselves: those over one axis in any form, and all others."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from intloom.compiler.fold.patterns.qparams import real_constant
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.reduction import reduced_axes
from intloom.compiler.importer import Array, Model, OnnxNode
from intloom.compiler.refusals import Refusal, UnsupportedPattern

CENTERED = {"LayerNormalization": True, "RMSNormalization": False, "SimplifiedLayerNormalization": False}
"""Normalizations over the last axes, and whether they subtract the mean."""
NORMALIZATIONS = frozenset(
    {
        "EmbedLayerNormalization",
        "GroupNorm",
        "GroupNormalization",
        "InstanceNormalization",
        "LpNormalization",
        "MeanVarianceNormalization",
        "SkipGroupNorm",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    }
)
"""Of ONNX and of onnxruntime. A BatchNormalization has constant statistics and is none of them."""


@dataclass(frozen=True, eq=False)
class Normalization:
    """Deviations from the mean, or from 0, over the root of their mean square plus epsilon, times gamma, plus beta."""

    value: str
    axes: tuple[int, ...]
    gamma: Array
    beta: Array
    epsilon: Array
    center: bool
    least: float = 0.0
    """The root, times that of the number of values, is at least this."""


def read_normalization(unit: QuantizationUnit) -> Normalization | None:
    """The normalization that a unit computes, as an operator or as a chain from ReduceMean to Add."""
    main = unit.main
    if main is None or main.domain:
        return None
    model, shape = unit.model, unit.model.shape(main.input(0)) or ()
    if main.op in CENTERED and [n for n in unit.operators if n not in unit.clamps] == [main]:
        constants = [real_constant(model, value) for value in main.inputs[1:]]
        read = [o for o in main.outputs[1:] if model.users(o)]
        known = [c for c in constants if c is not None]
        if not shape or len(known) < len(constants) or read:
            return None
        gamma, *rest = known
        axes = tuple(range(main.integer("axis", -1) % len(shape), len(shape)))
        epsilon = np.array(main.real("epsilon", 1e-5), np.float32)
        return Normalization(main.input(0), axes, gamma, rest[0] if rest else _ZERO, epsilon, CENTERED[main.op])
    makers = {out: n for n in unit.operators for out in n.outputs if not n.domain}
    chain = read_chain(model, unit.unclamped, makers)
    return None if chain is None or chain.value in makers else chain


_ZERO, _ONE = np.array(0, np.float32), np.array(1, np.float32)


def read_chain(model: Model, value: str, makers: Mapping[str, OnnxNode]) -> Normalization | None:
    """The normalization that `makers`, elementary operators by their results, compute from ReduceMean to `value`."""
    return _Chain(model, makers).read(value)


@dataclass(frozen=True, eq=False)
class _Chain:
    """A normalization as elementary operators, from its last one back."""

    _model: Model
    _makers: Mapping[str, OnnxNode]

    def read(self, value: str) -> Normalization | None:
        """The normalization that ends at a value, or None."""
        value, beta = self._with_constant(value, "Add")
        value, gamma = self._with_constant(value, "Mul")
        quotient = self._quotient(value)
        if quotient is None:
            return None
        deviation, root = quotient
        one = _ONE if gamma is None else gamma
        zero = _ZERO if beta is None else beta
        if (length := self._length(root, deviation)) is not None:
            along, count, least = length
            return Normalization(deviation, along, one / np.float32(np.sqrt(count)), zero, _ZERO, False, least)
        mean_square, epsilon = self._with_constant(self._made(root, "Sqrt"), "Add")
        mean = self._makers.get(mean_square)
        if epsilon is None or mean is None or mean.op != "ReduceMean" or not self._is_square(mean.input(0), deviation):
            return None
        source, means = self._centered(deviation)
        rank = len(self._model.shape(source) or ())
        axes = {reduced_axes(self._model, n, rank) for n in (mean, *means) if rank and n.integer("keepdims", 1)}
        if len(axes) != 1:
            return None
        return Normalization(source, axes.pop(), one, zero, epsilon, bool(means))

    def _length(self, value: str, vector: str) -> tuple[tuple[int, ...], int, float] | None:
        """Axes, number of values and least result of the ReduceL2 of a vector, which a Clip may bound from below."""
        bounded = self._makers.get(self._made(value, "Expand") or value)
        least: Array | None = _ZERO
        if bounded is not None and bounded.op == "Clip" and not bounded.input(2):
            least = real_constant(self._model, bounded.input(1))
            bounded = self._makers.get(bounded.input(0))
        shape = self._model.shape(vector)
        if bounded is None or bounded.op != "ReduceL2" or bounded.input(0) != vector or least is None or not shape:
            return None
        if not bounded.integer("keepdims", 1):
            return None
        axes = reduced_axes(self._model, bounded, len(shape))
        return axes, prod(shape[a] for a in axes), float(least.reshape(()))

    def _centered(self, deviation: str) -> tuple[str, tuple[OnnxNode, ...]]:
        """The value whose mean a Sub takes away, and the mean's operator; the deviation itself if none does."""
        centered = self._makers.get(deviation)
        mean = None if centered is None or centered.op != "Sub" else self._makers.get(centered.input(1))
        if centered is None or mean is None or mean.op != "ReduceMean" or mean.input(0) != centered.input(0):
            return deviation, ()
        return mean.input(0), (mean,)

    def _made(self, value: str, *ops: str) -> str:
        """The operand of the operator that makes a value, empty if it is another one."""
        node = self._makers.get(value)
        return node.input(0) if node is not None and node.op in ops else ""

    def _with_constant(self, value: str, op: str) -> tuple[str, Array | None]:
        """The other operand of an operator with a constant, and the constant; the value itself without one."""
        node = self._makers.get(value)
        for index in (0, 1):
            constant = real_constant(self._model, node.input(index)) if node is not None and node.op == op else None
            if node is not None and constant is not None:
                return node.input(1 - index), constant
        return value, None

    def _quotient(self, value: str) -> tuple[str, str] | None:
        """Dividend and divisor: of a Div, or of a Mul by a Reciprocal or by 1 divided by the divisor."""
        node = self._makers.get(value)
        if node is None or node.op not in ("Div", "Mul"):
            return None
        if node.op == "Div":
            return node.input(0), node.input(1)
        for index in (0, 1):
            inverse = self._makers.get(node.input(index))
            if inverse is None or inverse.op not in ("Div", "Reciprocal"):
                continue
            one = real_constant(self._model, inverse.input(0)) if inverse.op == "Div" else _ONE
            if one is not None and (one == 1).all():
                return node.input(1 - index), inverse.inputs[-1]
        return None

    def _is_square(self, value: str, base: str) -> bool:
        node = self._makers.get(value)
        if node is None or node.input(0) != base:
            return False
        exponent = real_constant(self._model, node.input(1))
        return (node.op == "Mul" and node.input(1) == base) or (
            node.op == "Pow" and exponent is not None and bool((exponent == 2).all())
        )


def unsupported_normalization(op: str) -> UnsupportedPattern:
    """Why the accelerator has no such operator, and what to change."""
    if op == "InstanceNormalization":
        return Refusal.NORMALIZATION(
            f"no integers define {op}: onnxruntime computes the statistics of each channel's pixels in float",
            "reshape to [1, C, H*W] with at most 1024 pixels, use LayerNormalization over the last axis, and quantize, "
            "then reshape back, multiply and add per channel; or train with BatchNormalization",
        )
    return Refusal.NORMALIZATION(
        f"no integers define {op}: it normalizes over something else than one axis, or adds before it",
        "leave it on the host, use LayerNormalization, or train with BatchNormalization, which becomes part of a "
        "convolution",
    )
