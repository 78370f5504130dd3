"""Isolation of a unit such that onnxruntime selects the same kernel as in the whole model.

For an operator between 8-bit values, onnxruntime has an integer kernel and a float kernel, which round some results
next to a tie differently. It selects the integer kernel if operands and result have the same type. On x86 it first
converts every int8 tensor between a QuantizeLinear and its only DequantizeLinear to uint8, unless the tensor is an
output. Other readers of an operand may therefore prevent the integer kernel. Where a tensor of a unit is converted in
this way, the unit is evaluated together with the QDQ pair of the tensor, and with floats instead of bytes.
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
    """A quantization unit as a model, with the QDQ pairs around it."""

    model: Model
    feeds: Mapping[str, Array]
    output: str
    params: QParams | None = None
    """Parameters of the result, if it is a float value."""

    def bytes_of(self, made: Array) -> Bytes:
        """Convert the unit's result to int8."""
        return to_int8(made if self.params is None else quantize(made, self.params))


def isolate(builder: GraphBuilder, unit: QuantizationUnit, values: Mapping[str, Bytes]) -> IsolatedUnit:
    """Isolate a unit, with `values` as its dequantized inputs."""
    model = builder.model
    codes = {leaf: to_stored(data, builder.operand(leaf).tensor.unsigned) for leaf, data in values.items()}
    if unit.qoperator is not None:
        # onnxruntime computes a QOperator node in integers whatever its types are.
        feeds = {model.producers[leaf].inputs[0]: coded for leaf, coded in codes.items()}
        return IsolatedUnit(model.with_nodes((unit.qoperator,)), feeds, unit.output)
    makers: list[OnnxNode] = []
    feeds, types = {}, {}
    for leaf, coded in codes.items():
        source = model.producers[leaf]
        name = source.inputs[0]
        # Fed with floats, the tensor keeps its QuantizeLinear, so that onnxruntime makes the same conversion here as
        # in the whole model.
        if _is_stored_as_uint8(builder, name):
            real, maker = f"{name}/real", model.producers[name]
            makers.append(replace(maker, inputs=(real, *maker.inputs[1:])))
            types[real] = ValueType(model.dtype(leaf), None)
            feeds[real] = dequantize(coded, read_qparams(model, source))
        else:
            feeds[name] = coded
    nodes = (*makers, *(model.producers[leaf] for leaf in unit.leaves), *unit.nodes)
    # The result's own pair is included too: onnxruntime converts its type before it selects the kernel.
    if not _is_stored_as_uint8(builder, unit.output):
        return IsolatedUnit(model.with_nodes(nodes, types=types), feeds, unit.output)
    reader = model.users(unit.output)[0]
    return IsolatedUnit(model.with_nodes((*nodes, reader), types=types), feeds, reader.outputs[0], builder.params(unit))


def _is_stored_as_uint8(builder: GraphBuilder, value: str) -> bool:
    """Whether onnxruntime converts an int8 value to uint8: between Q and one DQ, whose fp32 result has one reader."""
    model, maker = builder.model, builder.model.producers.get(value)
    # onnxruntime converts only pairs: a value from another operator keeps its int8 type.
    if maker is None or maker.op != QUANTIZE or model.dtype(value) != "int8":
        return False
    readers = model.users(value)
    if value in model.outputs or value in builder.extra_outputs or len(readers) != 1 or readers[0].op != DEQUANTIZE:
        return False
    real = readers[0].outputs[0]
    # onnxruntime's conversion matches fp32 pairs only; a float16 pair keeps its type.
    if model.dtype(real) != "float":
        return False
    # An operator that reads the value twice counts as two readers.
    return (real in model.outputs) + sum(n.inputs.count(real) for n in model.users(real)) == 1
