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

from intloom.compiler.fold.arithmetic.runtime_evaluation import Bytes, to_int8, to_stored
from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, QUANTIZE, QParams, dequantize, quantize, read_qparams
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.importer import Array, Model, OnnxNode
from intloom.compiler.importer.model import ValueType


@dataclass(frozen=True, eq=False)
class IsolatedUnit:
    """A unit with the pairs around it."""

    model: Model
    feeds: Mapping[str, Array]
    output: str
    params: QParams | None = None
    """Of the result, where it is given as floats."""

    def bytes_of(self, made: Array) -> Bytes:
        """The unit's result as int8."""
        return to_int8(made if self.params is None else quantize(made, self.params))


def isolate(builder: GraphBuilder, unit: QuantizationUnit, values: Mapping[str, Bytes]) -> IsolatedUnit:
    """A unit with `values` behind its leaves."""
    model = builder.model
    codes = {leaf: to_stored(data, builder.operand(leaf).tensor.unsigned) for leaf, data in values.items()}
    if unit.kernel is not None:
        # The runtime computes the file's own integer operator in integers whatever the types are.
        feeds = {model.producers[leaf].inputs[0]: coded for leaf, coded in codes.items()}
        return IsolatedUnit(model.with_nodes((unit.kernel,)), feeds, unit.output)
    makers: list[OnnxNode] = []
    feeds, types = {}, {}
    for leaf, coded in codes.items():
        source = model.producers[leaf]
        name = source.inputs[0]
        if _is_stored_as_uint8(builder, name):
            real, maker = f"{name}/real", model.producers[name]
            makers.append(replace(maker, inputs=(real, *maker.inputs[1:])))
            types[real] = ValueType(model.dtype(leaf), None)
            feeds[real] = dequantize(coded, read_qparams(model, source))
        else:
            feeds[name] = coded
    nodes = (*makers, *(model.producers[leaf] for leaf in unit.leaves), *unit.nodes)
    if not _is_stored_as_uint8(builder, unit.output):
        return IsolatedUnit(model.with_nodes(nodes, types=types), feeds, unit.output)
    reader = model.users(unit.output)[0]
    return IsolatedUnit(model.with_nodes((*nodes, reader), types=types), feeds, reader.outputs[0], builder.params(unit))


def _is_stored_as_uint8(builder: GraphBuilder, value: str) -> bool:
    """int8 between a QuantizeLinear and the one DequantizeLinear that reads it, which gives fp32 to one reader."""
    model, maker = builder.model, builder.model.producers.get(value)
    if maker is None or maker.op != QUANTIZE or model.dtype(value) != "int8":
        return False
    readers = model.users(value)
    if value in model.outputs or value in builder.extra_outputs or len(readers) != 1 or readers[0].op != DEQUANTIZE:
        return False
    real = readers[0].outputs[0]
    if model.dtype(real) != "float":
        return False
    return (real in model.outputs) + sum(n.inputs.count(real) for n in model.users(real)) == 1
