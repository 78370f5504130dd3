"""Cuts a model into units: everything float between stored integers and the next QuantizeLinear.

A unit is what one lowering sees: the QuantizeLinear at its end, the float operators before it (its cone) and the
DequantizeLinear nodes that feed those.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, QUANTIZE
from intloom.compiler.importer import Model, OnnxNode

CLAMPS = frozenset({"Relu", "Clip"})
"""Monotone operators that only cut values off: they commute with rounding, so they may follow a requantizer."""


@dataclass(frozen=True, eq=False)
class QuantizationUnit:
    """`output = quantize(clamps(main(…)))`."""

    model: Model
    quantize: OnnxNode
    operators: tuple[OnnxNode, ...]
    """The float operators, in graph order."""
    leaves: tuple[str, ...]
    """Float values that come from outside the cone: from DequantizeLinear, or floats of the host."""

    @property
    def output(self) -> str:
        """The stored integers that it makes."""
        return self.quantize.outputs[0]

    @cached_property
    def clamps(self) -> tuple[OnnxNode, ...]:
        """The clamps before the QuantizeLinear, in order of data flow."""
        found: list[OnnxNode] = []
        made = {out: n for n in self.operators for out in n.outputs}
        value = self.quantize.inputs[0]
        while value in made and made[value].op in CLAMPS and not made[value].domain:
            found.insert(0, made[value])
            value = made[value].inputs[0]
        return tuple(found)

    @property
    def unclamped(self) -> str:
        """The float value before the clamps."""
        return self.clamps[0].inputs[0] if self.clamps else self.quantize.inputs[0]

    @property
    def main(self) -> OnnxNode | None:
        """The operator before the clamps, or None where the unit only requantizes."""
        return next((n for n in self.operators if self.unclamped in n.outputs), None)

    @property
    def kernel(self) -> OnnxNode | None:
        """The file's own operator on integers, where the unit stands for one alone."""
        return self.main.kernel if self.main is not None and len(self.operators) == 1 else None

    @property
    def nodes(self) -> tuple[OnnxNode, ...]:
        """Cone and QuantizeLinear."""
        return (*self.operators, self.quantize)

    @property
    def origins(self) -> tuple[str, ...]:
        """Names of the file's nodes that it stands for."""
        return tuple(dict.fromkeys(o for n in self.nodes for o in n.origins))


def find_quantization_units(model: Model) -> tuple[QuantizationUnit, ...]:
    """A unit for every QuantizeLinear, in graph order."""
    return tuple(_unit(model, n) for n in model.nodes if n.op == QUANTIZE and not n.domain)


def _unit(model: Model, quantize: OnnxNode) -> QuantizationUnit:
    inside: dict[str, OnnxNode] = {}
    leaves: dict[str, None] = {}
    pending = [quantize.inputs[0]]
    while pending:
        value = pending.pop()
        made = model.producers.get(value)
        if made is None or made.op in (DEQUANTIZE, QUANTIZE):
            leaves[value] = None
        elif made.name not in inside:
            inside[made.name] = made
            pending += [v for v in made.inputs if v and v not in model.constants]
    cone = tuple(n for n in model.nodes if n.name in inside)
    return QuantizationUnit(model, quantize, cone, tuple(reversed(leaves)))
