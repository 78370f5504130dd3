"""Activations, and left operands of products, with a scale per channel: onnxruntime fuses them to what then fails.

Pass `equal_scales` makes equal scales one. Other scales become a division before a tensor of scale 1 and a product
after it, which is the same arithmetic, where onnxruntime runs the nodes: in host parts and in the reference.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain

import numpy as np

from intloom.compiler.fold.patterns.qparams import is_dequantize, is_quantize
from intloom.compiler.importer import STANDARD, Array, Constant, Model, OnnxNode

_Rewrite = Callable[[Model, OnnxNode, Array, dict[str, Constant]], tuple[OnnxNode, ...]]


def join_equal_scales(model: Model) -> Model:
    """Give activations whose channels have one scale that scale only."""
    return _rewritten(model, _joined)


def without_channel_scales(model: Model) -> Model:
    """Divide and multiply by scales per channel outside of the QuantizeLinear and DequantizeLinear."""
    return _rewritten(model, _separated)


def _rewritten(model: Model, rewrite: _Rewrite) -> Model:
    """The model with another form of each node that has a vector of scales and one zero point."""
    constants: dict[str, Constant] = {}
    nodes = list(chain.from_iterable(_forms(model, node, constants, rewrite) for node in model.nodes))
    return model.with_nodes(nodes, constants=constants) if constants else model


def _forms(model: Model, node: OnnxNode, constants: dict[str, Constant], rewrite: _Rewrite) -> tuple[OnnxNode, ...]:
    weights = node.input(0) in model.constants and not _is_left_operand(model, node.outputs[0])
    scale = model.constant(node.input(1)) if (is_quantize(node) or is_dequantize(node)) and not weights else None
    zero = model.constant(node.input(2)) if node.input(2) else np.zeros(1)
    if scale is None or zero is None or scale.ndim != 1 or scale.size == 1 or np.ptp(zero.astype(np.int64)):
        return (node,)
    return rewrite(model, node, scale, constants)


def _is_left_operand(model: Model, value: str) -> bool:
    return any(n.op == "MatMul" and n.input(0) == value for n in model.users(value))


def _joined(model: Model, node: OnnxNode, scale: Array, constants: dict[str, Constant]) -> tuple[OnnxNode, ...]:
    return (_with_scale(model, node, scale[0], constants),) if np.all(scale == scale[0]) else (node,)


def _separated(model: Model, node: OnnxNode, scale: Array, constants: dict[str, Constant]) -> tuple[OnnxNode, ...]:
    shape, name = model.shape(node.input(0)), f"{node.outputs[0]}/unscaled"
    if shape is None:
        return (node,)
    form = [1] * len(shape)
    form[node.integer("axis", 1)] = -1
    constants[f"{name}/scales"] = Constant(scale.reshape(form), model.constants[node.inputs[1]].dtype)
    whole = _with_scale(model, node, np.ones((), scale.dtype), constants)
    if is_quantize(node):
        inputs = (node.inputs[0], f"{name}/scales")
        divided = OnnxNode(f"{node.name}/divided", "Div", inputs, (name,), {}, STANDARD, origin=node.origins)
        return divided, replace(whole, inputs=(name, *whole.inputs[1:]))
    inputs = (name, f"{name}/scales")
    return replace(whole, outputs=(name,)), OnnxNode(
        f"{node.name}/multiplied", "Mul", inputs, node.outputs, {}, STANDARD, origin=node.origins
    )


def _with_scale(model: Model, node: OnnxNode, scale: Array, constants: dict[str, Constant]) -> OnnxNode:
    """The node with one scale and zero point."""
    name = f"{node.outputs[0]}/scale"
    constants[name] = Constant(np.asarray(scale).reshape(()), model.constants[node.inputs[1]].dtype)
    inputs = [node.inputs[0], name]
    if node.input(2):
        zero = model.constants[node.inputs[2]]
        constants[f"{name}/zero"] = Constant(zero.array.ravel()[0].reshape(()), zero.dtype)
        inputs.append(f"{name}/zero")
    return replace(node, inputs=tuple(inputs), attributes={k: v for k, v in node.attributes.items() if k != "axis"})
