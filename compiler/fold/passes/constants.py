"""Pass `constants`: compute at compile time what depends on constants and sizes only.

Shape chains of exporters become constant once all sizes of the inputs are fixed; so do shapes, scales and weights that
nodes of the file compute. onnxruntime evaluates these nodes, as it would at run time. A DequantizeLinear stays, because
the integers before it are the weights; a QuantizeLinear of what only such constants give becomes a constant.

Afterwards no Constant node is left; quantized weights and computed shapes are constants.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from intloom.compiler.fold.patterns.qparams import (
    is_dequantize,
    is_quantize,
    quantize,
    read_qparams,
)
from intloom.compiler.importer import STANDARD, Constant, Model, OnnxNode, Opaque, cut, infer, to_bytes
from intloom.compiler.reference import open_session

# numpy has no 4-bit or 2-bit integers.
_KINDS = {"int8": np.int8, "uint8": np.uint8, "int4": np.int8, "uint4": np.uint8, "int2": np.int8, "uint2": np.uint8}
_COMPUTED = frozenset({"bool", "double", "float", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"})
"""Element types of results that are computed here."""
_RANDOM = frozenset({"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform"})
_LARGEST_RESULT = 1 << 20


def fold_constants(model: Model) -> Model:
    """Apply the pass."""
    nodes = [_without_check(model, _without_cast(model, node)) for node in model.nodes]
    read = {*model.outputs, *(v for n in nodes for v in n.inputs)}
    model = model.with_nodes([n for n in nodes if n.op != "IsNaN" or n.outputs[0] in read])
    while len((folded := _folded_once(model)).nodes) < len(model.nodes):
        # Computed shapes give later values a size, and with it more nodes a result.
        incomplete = any(folded.shape(v) is None for n in folded.nodes for v in n.outputs if v)
        model = infer(folded) if incomplete else folded
    return model


def _without_cast(model: Model, node: OnnxNode) -> OnnxNode:
    """The node; a Cast to the type that its operand has becomes an Identity.

    PyTorch writes such a Cast between the QuantizeLinear and the DequantizeLinear of its own quantization.
    """
    kept = node.op == "Cast" and not node.domain and model.dtype(node.input(0)) == model.dtype(node.outputs[0]) != ""
    return replace(node, op="Identity", attributes={}) if kept else node


def _without_check(model: Model, node: OnnxNode) -> OnnxNode:
    """The node; a Where that replaces NaNs of a quantized value, which has none, becomes an Identity.

    PyTorch writes it after the Softmax of an attention.
    """
    test = model.producers.get(node.input(0)) if node.op == "Where" and not node.domain else None
    source = model.producers.get(test.input(0)) if test is not None and test.op == "IsNaN" else None
    if source is not None and source.op == "Softmax":
        source = model.producers.get(source.input(0))
    whole = model.shape(node.input(2)) == model.shape(node.outputs[0]) is not None
    return replace(node, op="Identity", inputs=node.inputs[2:]) if whole and source and is_dequantize(source) else node


def _folded_once(model: Model) -> Model:
    """The model without the nodes whose operands, or the sizes of whose operands, are known."""
    constants = dict(model.constants)
    # A view: it sees the constants that are added below.
    view = replace(model, constants=constants)
    computed: dict[str, None] = {}
    dequantized: dict[str, None] = {}
    chosen, kept, rest = [], [], []
    for node in model.nodes:
        value = _constant(view, node) if node.domain == STANDARD else None
        if value is not None:
            constants[node.outputs[0]] = value
            continue
        rest.append(node)
        real = is_dequantize(node) or any(v in dequantized for v in node.inputs)
        # A float constant that is quantized has become one above, unless it holds NaNs.
        nan = is_quantize(node) and not real
        if nan or not _is_computable(view, node, computed | dequantized):
            kept.append(node)
            continue
        chosen.append(node)
        if real and not is_quantize(node):
            # Later passes read the integers before it.
            dequantized |= dict.fromkeys(node.outputs)
            kept.append(node)
        else:
            computed |= dict.fromkeys(node.outputs)
    kept = _without_unread(kept, model.outputs, dequantized)
    read = {v for n in kept for v in n.reads}
    results = _evaluate(view, chosen, [v for v in computed if v in read])
    if results is None:
        return model.with_nodes(rest, constants=constants)
    return model.with_nodes(kept, constants=constants | results)


def _without_unread(nodes: Sequence[OnnxNode], wanted: Iterable[str], values: Container[str]) -> list[OnnxNode]:
    """The nodes without those that give only some of these values, none of which is wanted or read."""
    read, kept = set(wanted), []
    for node in reversed(nodes):
        if not read.isdisjoint(node.outputs) or any(v not in values for v in node.outputs):
            kept.append(node)
            read.update(node.reads)
    return kept[::-1]


def _constant(model: Model, node: OnnxNode) -> Constant | None:
    """The result of an operator that needs no evaluation."""
    if node.op == "Constant":
        return _stored(node)
    if node.op in ("Shape", "Size"):
        return _size(model, node)
    source = model.constants.get(node.input(0))
    if source is None:
        return None
    if node.op == "Identity":
        return source
    if is_quantize(node) and source.dtype == "float" and all(v in model.constants for v in node.inputs if v):
        params = read_qparams(model, node)
        # ONNX does not define the quantized value of a NaN: the node stays for onnxruntime.
        if params.dtype in _KINDS and not np.isnan(source.array).any():
            return Constant(quantize(source.array, params).astype(_KINDS[params.dtype]), params.dtype)
    return None


def _size(model: Model, node: OnnxNode) -> Constant | None:
    """The result of a Shape or Size."""
    shape = model.shape(node.input(0))
    if shape is None or node.outputs[0] in model.outputs:
        return None
    part = shape[node.integer("start", 0) : node.integer("end", len(shape))]
    return Constant(np.array(prod(shape) if node.op == "Size" else part, np.int64), "int64")


def _stored(node: OnnxNode) -> Constant | None:
    value = node.attributes.get("value")
    if isinstance(value, Constant):
        return value
    for name, kind, dtype in (("value_float", np.float32, "float"), ("value_int", np.int64, "int64")):
        for key in (name, f"{name}s"):
            if key in node.attributes:
                return Constant(np.array(node.attributes[key], dtype=kind), dtype)
    return None


def _is_computable(model: Model, node: OnnxNode, computed: Mapping[str, None]) -> bool:
    """Whether a node can be evaluated now: its operands are known, and its results are small enough to store."""
    if node.domain != STANDARD or node.op in _RANDOM or any(isinstance(a, Opaque) for a in node.attributes.values()):
        return False
    if any(v not in model.constants and v not in computed for v in node.inputs if v):
        return False
    shapes = [model.shape(v) for v in node.outputs]
    small = all(s is not None and prod(s) <= _LARGEST_RESULT for s in shapes)
    stored = all(model.dtype(v) in _COMPUTED and v not in model.outputs for v in node.outputs)
    return small and stored and bool(node.inputs)


def _evaluate(model: Model, nodes: Sequence[OnnxNode], wanted: Sequence[str]) -> dict[str, Constant] | None:
    """Values that some nodes compute from constants, by onnxruntime; None if it does not support one of them."""
    if not wanted:
        return {}
    try:
        needed = _without_unread(nodes, wanted, {v for n in nodes for v in n.outputs})
        session = open_session(to_bytes(cut(model, needed, (), wanted)), optimized=False, threads=1)
        results = session.run(wanted, {})
    except Exception:  # noqa: BLE001  # onnxruntime's exceptions have no common base class
        return None
    return {name: Constant(np.asarray(r), model.dtype(name)) for name, r in zip(wanted, results, strict=True)}
