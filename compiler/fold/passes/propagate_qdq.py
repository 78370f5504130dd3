"""Pass `propagate_qdq`: insert QDQ pairs around data movement operators that lack them.

A MaxPool or Reshape of dequantized values returns values of the same scale. Quantizing its result with the input's
parameters therefore changes nothing: `Q(DQ(x)) = x`. The pass inserts this pair after the operator, and after a Relu
that a convolution or an average reads.

Where a QuantizeLinear follows the operator (float operator -> data movement -> Q), the pass copies the pair to before
the operator, because data movement and rounding commute. A Concat gets a pair on each operand, and a Split of several
scales becomes one for each output.

Runs after `constants`. Afterwards data movement operators are between DequantizeLinear and QuantizeLinear.
"""

from dataclasses import replace

import numpy as np

from intloom.compiler.fold.patterns.data_movement import is_data_movement, pad_value
from intloom.compiler.fold.patterns.elementwise import ELEMENTWISE
from intloom.compiler.fold.patterns.qparams import (
    DEQUANTIZE,
    QUANTIZE,
    dequantize,
    is_dequantize,
    is_quantize,
    quantize,
    read_qparams,
)
from intloom.compiler.importer import Model, OnnxNode, ValueType


def propagate_qdq(model: Model) -> Model:
    """Apply the pass."""
    return _forwards(_backwards(_split(_join(model))))


def _forwards(model: Model) -> Model:
    """Insert a pair after data movement of dequantized values."""
    nodes: list[OnnxNode] = []
    types: dict[str, ValueType] = {}
    pairs: dict[str, OnnxNode] = {n.outputs[0]: n for n in model.nodes if is_dequantize(n)}
    for node in model.nodes:
        source = pairs.get(node.input(0)) if is_data_movement(node) or _is_lone_relu(model, node) else None
        if source is None or not _can_pair(model, source) or not _keeps_scale(model, node, source):
            nodes.append(node)
            continue
        outputs = []
        added: list[OnnxNode] = []
        for value in node.outputs:
            users = model.users(value)
            if not value or (value not in model.outputs and all(is_quantize(n) for n in users)):
                outputs.append(value)
                continue
            raw, stored = f"{value}/raw", f"{value}/stored"
            outputs.append(raw)
            pair = _pair(source, raw, stored, value, node)
            added += pair
            pairs[value] = pair[1]
            types[raw] = model.types.get(value, ValueType("float", None))
            known = types.get(source.inputs[0])
            dtype = model.dtype(source.inputs[0]) if known is None else known.dtype
            types[stored] = ValueType(dtype, model.shape(value))
        nodes += [replace(node, outputs=tuple(outputs)), *added]
    return model.with_nodes(nodes, types=types)


def _is_lone_relu(model: Model, node: OnnxNode) -> bool:
    """Whether the node is a Relu, which keeps a scale, before an operator that needs a quantized operand."""
    readers = model.users(node.outputs[0])
    return node.op == "Relu" and not node.domain and any(n.op not in (QUANTIZE, *ELEMENTWISE) for n in readers)


def _can_pair(model: Model, source: OnnxNode) -> bool:
    """Whether a QuantizeLinear can produce what this node reads: a bias, which is int32, comes from none."""
    params = read_qparams(model, source)
    return params.per_tensor and params.dtype != "int32"


def _keeps_scale(model: Model, node: OnnxNode, source: OnnxNode) -> bool:
    """Whether the quantized type represents all values of the result; the constant of a Pad may not be one of them."""
    if node.op != "Pad":
        return True
    value, params = pad_value(model, node), read_qparams(model, source)
    if value is None or params.dtype not in ("int8", "uint8"):
        return False
    exact = np.array(value, np.float32)
    return bool(dequantize(quantize(exact, params), params) == exact)


def _join(model: Model) -> Model:
    """Quantize computed operands of a Concat with the parameters of its result."""
    nodes: list[OnnxNode] = []
    types: dict[str, ValueType] = {}
    for node in model.nodes:
        users = _sole_quantize(model, node) if node.op == "Concat" and not node.domain else ()
        empty = any(0 in (model.shape(v) or ()) for v in node.inputs)
        if not users or empty or not read_qparams(model, users[0]).per_tensor:
            nodes.append(node)
            continue
        inputs = []
        for position, value in enumerate(node.inputs):
            made = model.producers.get(value)
            if made is None or is_dequantize(made):
                inputs.append(value)
                continue
            stored, back = (f"{node.outputs[0]}/{kind}{position}" for kind in ("stored", "back"))
            nodes += _pair(users[0], value, stored, back, node)
            types[stored] = ValueType(model.dtype(users[0].outputs[0]), model.shape(value))
            types[back] = ValueType("float", model.shape(value))
            inputs.append(back)
        nodes.append(replace(node, inputs=tuple(inputs)))
    return model.with_nodes(nodes, types=types)


def _split(model: Model) -> Model:
    """Give each output of a Split of a computed value a Split of its own, of the value as that output is quantized."""
    nodes: list[OnnxNode] = []
    types: dict[str, ValueType] = {}
    for node in model.nodes:
        value, made = node.input(0), model.producers.get(node.input(0))
        computed = made is not None and not is_dequantize(made) and not set(node.outputs) & set(model.outputs)
        readers = [model.users(v) for v in node.outputs] if node.op == "Split" and computed else [()]
        if not all(len(u) == 1 and is_quantize(u[0]) and read_qparams(model, u[0]).per_tensor for u in readers):
            nodes.append(node)
            continue
        for number, (output, users) in enumerate(zip(node.outputs, readers, strict=True)):
            stored, back = f"{output}/stored", f"{output}/back"
            nodes += _pair(users[0], value, stored, back, node)
            types[stored] = ValueType(model.dtype(users[0].outputs[0]), model.shape(value))
            types[back] = ValueType("float", model.shape(value))
            names = [v if i == number else f"{v}/beside{number}" for i, v in enumerate(node.outputs)]
            types |= {new: model.types[v] for new, v in zip(names, node.outputs, strict=True) if v in model.types}
            name = f"{node.name}/{number}" if number else node.name
            nodes.append(
                replace(node, name=name, inputs=(back, *node.inputs[1:]), outputs=tuple(names), origin=node.origins)
            )
    return model.with_nodes(nodes, types=types)


def _backwards(model: Model) -> Model:
    """Copy the QuantizeLinear after data movement of computed values to before the data movement."""
    moved = {n.name: users[0] for n in model.nodes if is_data_movement(n) and (users := _sole_quantize(model, n))}
    nodes: list[OnnxNode] = []
    types: dict[str, ValueType] = {}
    # In reverse order, so that the pair moves to before a whole chain of data movement operators.
    for node in reversed(model.nodes):
        quantize = moved.get(node.name)
        value = node.input(0)
        made = model.producers.get(value)
        if quantize is None or made is None or is_dequantize(made) or not read_qparams(model, quantize).per_tensor:
            nodes.insert(0, node)
            continue
        # Other readers of the value may quantize it otherwise.
        alone = len(model.users(value)) == 1 and value not in model.outputs
        # A reader of the result may be the only one, and quantize it.
        base = value if alone else f"{node.outputs[0]}/operand"
        stored, back = f"{base}/stored", f"{base}/back"
        first, second = _pair(quantize, value, stored, back, node)
        types[stored] = ValueType(model.dtype(quantize.outputs[0]), model.shape(value))
        types[back] = ValueType("float", model.shape(value))
        nodes[:0] = [first, second, replace(node, inputs=(back, *node.inputs[1:]))]
        if is_data_movement(made) and alone:
            moved[made.name] = first
    return model.with_nodes(nodes, types=types)


def _sole_quantize(model: Model, node: OnnxNode) -> tuple[OnnxNode, ...]:
    users = model.users(node.outputs[0])
    alone = len(node.outputs) == 1 and len(users) == 1 and node.outputs[0] not in model.outputs
    return users if alone and is_quantize(users[0]) else ()


def _pair(pattern: OnnxNode, raw: str, stored: str, back: str, node: OnnxNode) -> tuple[OnnxNode, OnnxNode]:
    """A QDQ pair with the parameters of `pattern`: `raw` -> Q -> `stored` -> DQ -> `back`."""
    parameters = pattern.inputs[1:]
    # A QuantizeLinear without zero point returns uint8; a DequantizeLinear takes the type of its input.
    name = f"{node.name}/{stored}"
    first = OnnxNode(f"{name}/Q", QUANTIZE, (raw, *parameters), (stored,), pattern.attributes, origin=node.origins)
    second = OnnxNode(f"{name}/DQ", DEQUANTIZE, (stored, *parameters), (back,), {}, origin=node.origins)
    return first, second
