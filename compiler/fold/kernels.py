"""Makes onnxruntime take the same kernel for a unit by itself as in the midst of its model.

For an operator between stored bytes onnxruntime has a kernel of integers and one of floats, and they round some results
next to a tie differently. It takes the former where operands and result are stored in one type. On x86 it first stores
every int8 tensor between a QuantizeLinear and the one DequantizeLinear that reads it as uint8, unless the model gives
the tensor out; so who else reads its operands may cost an operator its integer kernel. Where a unit's tensor is such a
one, the unit is evaluated together with the tensor's pair, and floats stand for its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..importer import Array, Model, OnnxNode
from ..importer.model import ValueType
from .lowering import Lowering
from .oracle import Bytes, internal, stored
from .qparams import DEQUANTIZE, QUANTIZE, QParams, read_qparams
from .units import Unit


@dataclass(frozen=True, eq=False)
class Framed:
    """A unit with the pairs around it."""

    model: Model
    nodes: tuple[OnnxNode, ...]
    feeds: Mapping[str, Array]
    output: str
    params: QParams | None
    """Of the result, where it is given as floats."""

    def bytes_of(self, made: Array) -> Bytes:
        """The unit's result as int8."""
        if self.params is None:
            return internal(made)
        codes = np.rint(made / self.params.scale) + self.params.zero_point
        return internal(codes.astype(self.params.dtype))


def framed(low: Lowering, unit: Unit, values: Mapping[str, Bytes]) -> Framed:
    """A unit with `values` behind its leaves."""
    makers: list[OnnxNode] = []
    feeds: dict[str, Array] = {}
    types: dict[str, ValueType] = {}
    for leaf, data in values.items():
        source = low.model.producers[leaf]
        name, coded = source.inputs[0], stored(data, low.operand(leaf).tensor.unsigned)
        if _stands_alone(low, name):
            real = f"{name}/real"
            maker = low.model.producers[name]
            makers.append(replace(maker, inputs=(real, *maker.inputs[1:])))
            types[real] = ValueType(low.model.dtype(leaf), None)
            feeds[real] = _real(coded, read_qparams(low.model, source))
        else:
            feeds[name] = coded
    sources = tuple(low.model.producers[leaf] for leaf in unit.leaves)
    readers = low.model.users(unit.output)[:1] if _stands_alone(low, unit.output) else ()
    nodes = (*makers, *sources, *unit.nodes, *readers)
    return Framed(
        model=low.model.with_nodes(nodes, types=types),
        nodes=nodes,
        feeds=feeds,
        output=readers[0].outputs[0] if readers else unit.output,
        params=low.params(unit) if readers else None,
    )


def _real(codes: Array, params: QParams) -> Array:
    """Floats that QuantizeLinear makes these codes of."""
    return ((codes.astype(np.int32) - params.zero_point) * params.scale).astype(np.float32)


def _stands_alone(low: Lowering, value: str) -> bool:
    """int8 between a QuantizeLinear and the one DequantizeLinear that reads it, which gives fp32 to one reader."""
    model, maker = low.model, low.model.producers.get(value)
    if maker is None or maker.op != QUANTIZE or model.dtype(value) != "int8":
        return False
    readers = model.users(value)
    if value in model.outputs or value in low.shown or len(readers) != 1 or readers[0].op != DEQUANTIZE:
        return False
    real = readers[0].outputs[0]
    if model.dtype(real) != "float":
        return False
    return (real in model.outputs) + sum(n.inputs.count(real) for n in model.users(real)) == 1
