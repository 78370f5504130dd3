"""Quantization units: the float operators between DequantizeLinear nodes and the next QuantizeLinear.

A quantization unit is the fusion pattern that one operator lowering implements: the QuantizeLinear at its end, the
float operators before it, and the DequantizeLinear nodes that they read.
"""

from dataclasses import dataclass
from functools import cached_property

from intloom.compiler.fold.patterns.qparams import is_dequantize, is_quantize
from intloom.compiler.importer import Model, OnnxNode

CLAMPS = frozenset({"Relu", "Clip"})
"""Monotone operators that only clamp. They commute with rounding, so they may follow a requantizer."""


@dataclass(frozen=True, eq=False)
class QuantizationUnit:
    """The fusion pattern `output = quantize(clamps(main(…)))`."""

    model: Model
    quantize: OnnxNode
    operators: tuple[OnnxNode, ...]
    """The float operators, in graph order."""
    leaves: tuple[str, ...]
    """Float inputs of the unit: results of DequantizeLinear nodes, or float values of the host."""

    @property
    def output(self) -> str:
        """The quantized value that the unit produces."""
        return self.quantize.outputs[0]

    @cached_property
    def clamps(self) -> tuple[OnnxNode, ...]:
        """The clamps before the QuantizeLinear, in data-flow order."""
        clamps: list[OnnxNode] = []
        made = {out: n for n in self.operators for out in n.outputs}
        value = self.quantize.inputs[0]
        # A custom domain may reuse the names Relu and Clip with another meaning.
        while value in made and made[value].op in CLAMPS and not made[value].domain:
            clamps.insert(0, made[value])
            value = made[value].inputs[0]
        return tuple(clamps)

    @property
    def unclamped(self) -> str:
        """The float value before the clamps."""
        return self.clamps[0].inputs[0] if self.clamps else self.quantize.inputs[0]

    @property
    def main(self) -> OnnxNode | None:
        """The operator before the clamps, or None if the unit only requantizes."""
        return next((n for n in self.operators if self.unclamped in n.outputs), None)

    @property
    def operator(self) -> OnnxNode:
        """The operator before the clamps, for lowerings: each is registered for an operator."""
        if self.main is None:
            raise ValueError(f"the unit that produces {self.output} must have an operator before its clamps")
        return self.main

    @property
    def qoperator(self) -> OnnxNode | None:
        """The QOperator node of the file, if the unit was rewritten from one."""
        return self.main.qoperator if self.main is not None and len(self.operators) == 1 else None

    @property
    def nodes(self) -> tuple[OnnxNode, ...]:
        """Float operators and QuantizeLinear."""
        return (*self.operators, self.quantize)

    @property
    def origins(self) -> tuple[str, ...]:
        """Names of the nodes of the file that the unit implements."""
        return tuple(dict.fromkeys(o for n in self.nodes for o in n.origins))


def find_quantization_units(model: Model) -> tuple[QuantizationUnit, ...]:
    """Find the quantization unit of every QuantizeLinear, in graph order."""
    return tuple(_unit(model, n) for n in model.nodes if is_quantize(n))


def _unit(model: Model, quantize: OnnxNode) -> QuantizationUnit:
    inside: dict[str, OnnxNode] = {}
    leaves: dict[str, None] = {}
    pending = [quantize.inputs[0]]
    while pending:
        value = pending.pop()
        made = model.producers.get(value)
        if made is None or is_dequantize(made) or is_quantize(made):
            leaves[value] = None
        # Operators may share inputs; each is visited once.
        elif made.name not in inside:
            inside[made.name] = made
            pending += [v for v in made.reads if v and v not in model.constants]
    # Lowerings rely on graph order, which the walk from the end does not give.
    operators = tuple(sorted(inside.values(), key=lambda n: model.positions[n.name]))
    return QuantizationUnit(model, quantize, operators, tuple(reversed(leaves)))
