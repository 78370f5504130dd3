"""Pass `integer_chains`: rewrite ConvInteger and MatMulInteger, with the operators after them, to Conv and Gemm.

Exporters of quantization-aware training produce `ConvInteger -> [Add int32] -> Cast -> Mul(scale) -> [Add float]`. The
constant of the Mul is the product of input scale and weight scale. The input scale is that of the QuantizeLinear
before the chain; the quotient is the weight scale.

Runs after `constants`. Chains whose input scale is not constant (DynamicQuantizeLinear) stay for the host.
"""

from dataclasses import dataclass, replace

import numpy as np

from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, is_quantize, read_qparams
from intloom.compiler.importer import Array, Constant, Model, OnnxNode, infer

_FLOAT_OPS = {"ConvInteger": "Conv", "MatMulInteger": "Gemm"}
_FLOAT = 1


@dataclass(frozen=True, eq=False)
class _Chain:
    """A matched chain: its nodes in order and its constants."""

    nodes: tuple[OnnxNode, ...]
    scale: Array
    integer_bias: Array | None
    float_bias: Array | None

    @property
    def result(self) -> str:
        """The value that the chain produces."""
        return self.nodes[-1].outputs[0]


def fold_integer_chains(model: Model) -> Model:
    """Apply the pass."""
    chains = [c for n in model.nodes if n.op in _FLOAT_OPS and not n.domain and (c := _match(model, n)) is not None]
    if not chains:
        return model
    gone = {n.name for c in chains for n in c.nodes}
    at = {c.nodes[-1].name: c for c in chains}
    nodes: list[OnnxNode] = []
    constants: dict[str, Constant] = {}
    for node in model.nodes:
        if node.name in at:
            nodes += _rewrite(model, at[node.name], constants)
        elif node.name not in gone:
            nodes.append(node)
    return infer(model.with_nodes(nodes, constants=constants))


def _match(model: Model, start: OnnxNode) -> _Chain | None:
    maker = model.producers.get(start.inputs[0])
    weights = model.shape(start.inputs[1])
    if maker is None or not is_quantize(maker) or start.inputs[1] not in model.constants or weights is None:
        return None
    channels = weights[0] if start.op == "ConvInteger" else weights[-1]
    nodes, integer_bias, float_bias = [start], None, None
    step = _next(model, nodes)
    if step is not None and step.op == "Add":
        integer_bias = _constant(model, step, channels)
        nodes.append(step)
        step = None if integer_bias is None else _next(model, nodes)
    if step is None or step.op != "Cast" or step.integer("to", 0) != _FLOAT:
        return None
    nodes.append(step)
    step = _next(model, nodes)
    scale = _constant(model, step, channels) if step is not None and step.op == "Mul" else None
    if step is None or scale is None:
        return None
    nodes.append(step)
    step = _next(model, nodes)
    if step is not None and step.op == "Add" and integer_bias is None:
        float_bias = _constant(model, step, channels)
        if float_bias is not None:
            nodes.append(step)
    return _Chain(tuple(nodes), scale, integer_bias, float_bias)


def _next(model: Model, nodes: list[OnnxNode]) -> OnnxNode | None:
    """The only reader of the chain's last value, or None."""
    value = nodes[-1].outputs[0]
    users = model.users(value)
    return users[0] if len(users) == 1 and value not in model.outputs else None


def _constant(model: Model, node: OnnxNode, channels: int) -> Array | None:
    """The constant operand of a node, broadcast to one value per channel."""
    arrays = [model.constants[v].array for v in node.inputs if v in model.constants]
    if len(arrays) != 1 or arrays[0].size not in (1, channels):
        return None
    return np.broadcast_to(arrays[0].ravel(), (channels,))


def _rewrite(model: Model, chain: _Chain, constants: dict[str, Constant]) -> list[OnnxNode]:
    start = chain.nodes[0]
    maker = model.producers[start.inputs[0]]
    x_scale = np.float32(read_qparams(model, maker).scale)
    origin = tuple(n.name for n in chain.nodes)
    name, axis = start.name, 0 if start.op == "ConvInteger" else 1
    scale = chain.scale.astype(np.float32)
    constants[f"{name}/scale"] = Constant((scale / x_scale).astype(np.float32), "float")
    weights = model.constants[start.inputs[1]]
    zero = model.constant(start.input(3)) if start.input(3) else None
    zeros = np.broadcast_to(np.zeros((), weights.array.dtype) if zero is None else zero.ravel(), scale.shape)
    constants[f"{name}/zero"] = Constant(np.ascontiguousarray(zeros), weights.dtype)
    nodes: list[OnnxNode] = []

    def dequantized(part: str, *stored: str, **attributes: int) -> str:
        value = f"{name}/{part}"
        nodes.append(OnnxNode(f"{value}/DQ", DEQUANTIZE, stored, (value,), attributes, origin=origin))
        return value

    inputs = [
        dequantized("x", start.inputs[0], *maker.inputs[1:]),
        dequantized("w", start.inputs[1], f"{name}/scale", f"{name}/zero", axis=axis),
    ]
    if chain.integer_bias is not None:
        constants[f"{name}/bias"] = Constant(np.ascontiguousarray(chain.integer_bias).astype(np.int32), "int32")
        product = (x_scale * constants[f"{name}/scale"].array).astype(np.float32)
        constants[f"{name}/bias_scale"] = Constant(product, "float")
        inputs.append(dequantized("b", f"{name}/bias", f"{name}/bias_scale", axis=0))
    elif chain.float_bias is not None:
        constants[f"{name}/bias"] = Constant(np.ascontiguousarray(chain.float_bias).astype(np.float32), "float")
        inputs.append(f"{name}/bias")
    float_node = replace(start, op=_FLOAT_OPS[start.op], inputs=tuple(inputs), outputs=(chain.result,), origin=origin)
    return [*nodes, float_node]
