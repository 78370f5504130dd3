"""Extraction of the host parts, which onnxruntime runs before, between and after the regions of the graph."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.qparams import QUANTIZE, is_dequantize, is_quantize
from intloom.compiler.importer import Model, OnnxNode, cut
from intloom.compiler.ir import IntGraph


def input_source(builder: GraphBuilder, stored: str) -> str:
    """Value of the model from which the host computes an input of the graph.

    It is the float value before the QuantizeLinear where the host only has to quantize. Otherwise it is the quantized
    value itself: the QuantizeLinear stays in the host part, so that onnxruntime selects the same kernels as in the
    whole model.
    """
    maker = builder.model.producers.get(stored)
    quantizes = maker is not None and is_quantize(maker) and stored not in builder.host_computed
    return maker.inputs[0] if maker is not None and quantizes else stored


def boundary_value(model: Model, stored: str) -> str:
    """Value of the model that an output of the graph provides to the host.

    It is the quantized value itself where this is an output of the model or where no DequantizeLinear reads it.
    Otherwise it is a dequantized value, preferably an output of the model.
    """
    floats = [out for n in model.users(stored) if is_dequantize(n) for out in n.outputs]
    if stored in model.outputs or not floats:
        return stored
    return next((v for v in floats if v in model.outputs), floats[0])


def part_before(builder: GraphBuilder, region: IntGraph, leaving: Mapping[str, str], *, first: bool) -> Model | None:
    """Host part before a region: from the model's inputs and the results of earlier regions to the region's inputs."""
    sources = dict.fromkeys(input_source(builder, v) for v in region.inputs if v in builder.inputs)
    wanted = [v for v in sources if v not in builder.model.inputs]
    if not first:
        wanted = [v for v in wanted if v in builder.host_computed]
    return _part(builder, {} if first else leaving, wanted, builder.model.inputs if first else ())


def final_part(builder: GraphBuilder, leaving: Mapping[str, str]) -> Model | None:
    """Host part after the last region: from the results of the graph, as boundary values, to the model's outputs."""
    borders = {boundary_value(builder.model, stored) for stored in leaving} | set(builder.model.inputs)
    return _part(builder, leaving, [v for v in builder.model.outputs if v not in borders], ())


def _part(
    builder: GraphBuilder, leaving: Mapping[str, str], outputs: Sequence[str], inputs: Sequence[str]
) -> Model | None:
    """Extract the nodes that `outputs` depend on, with the graph's results and at least `inputs` as inputs.

    A dequantized result is quantized again first. This does not change its value, but onnxruntime then selects the
    same integer kernels as in the whole model.
    """
    model = _with_qoperators(builder.model)
    nodes = before(model, outputs, leaving)
    if not nodes and not any(v in model.constants for v in outputs):
        return None
    made = {out for n in nodes for out in n.outputs}
    read = dict.fromkeys(v for n in nodes for v in n.reads if v and v not in made and v not in model.constants)
    by_stored = {stored: boundary_value(builder.model, stored) for stored in leaving}
    again = [_requantize(builder.model, v, by_stored[v]) for v in read if by_stored.get(v, v) != v]
    again_of = {n.inputs[0]: f"{n.inputs[0]}/again" for n in again}
    # A dictionary keeps the order of the inputs and removes duplicates.
    fed = dict.fromkeys((*inputs, *(by_stored.get(v, v) for v in read)))
    return cut(model, (*again, *(n.renamed(again_of) for n in nodes)), fed, outputs)


def _with_qoperators(model: Model) -> Model:
    """Restore the QOperator nodes of the file from their QDQ form: the host runs the operators of the file.

    The host is onnxruntime, so operators of a TFLite file stay in QDQ form.
    """
    if model.tflite is not None:
        return model
    qoperators = {n.outputs[0]: n.qoperator for n in model.nodes if n.qoperator is not None}
    nodes: list[OnnxNode] = []
    for node in model.nodes:
        # The QuantizeLinear after the float form takes the QOperator node's position, where all its operands exist.
        qoperator = qoperators.get(node.inputs[0]) if is_quantize(node) else None
        if qoperator is not None and qoperator.outputs == node.outputs:
            nodes.append(qoperator)
        elif node.qoperator is None:
            nodes.append(node)
    return model.with_nodes(nodes)


def _requantize(model: Model, stored: str, value: str) -> OnnxNode:
    """Create a QuantizeLinear that restores the quantized value from its dequantized value."""
    source = next(n for n in model.users(stored) if value in n.outputs)
    attributes = {k: v for k, v in source.attributes.items() if k == "axis"}
    inputs = (value, *source.inputs[1:])
    return replace(
        source, name=f"{source.name}/again", op=QUANTIZE, inputs=inputs, outputs=(stored,), attributes=attributes
    )


def before(model: Model, values: Iterable[str], given: Iterable[str]) -> tuple[OnnxNode, ...]:
    """Nodes that `values` depend on, up to the `given` values."""
    wanted, stop = set(values), {"", *given}
    nodes = []
    for node in reversed(model.nodes):
        if not wanted.isdisjoint({*node.outputs} - stop):
            nodes.append(node)
            wanted.update(node.reads)
    return tuple(reversed(nodes))
