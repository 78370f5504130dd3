"""Pass `custom_shapes`: infer types and shapes of results of custom operations and of what depends on them.

Runs after `constants`. Afterwards a registered operation's result has a shape if its operands have.
"""

from intloom.compiler.custom import AttributeValue, find
from intloom.compiler.fold.patterns.qparams import is_dequantize
from intloom.compiler.importer import Model, OnnxNode, ValueType, infer


def simple_attributes(node: OnnxNode) -> dict[str, AttributeValue]:
    """Attributes that are passed to a custom operation: numbers, strings and lists of integers."""
    attributes: dict[str, AttributeValue] = {}
    for name, value in node.attributes.items():
        if isinstance(value, int | float | str):
            attributes[name] = value
        elif isinstance(value, tuple):
            attributes[name] = node.integers(name, ())
    return attributes


def add_custom_shapes(model: Model) -> Model:
    """Apply the pass in graph order: the operands of an operation may depend on an earlier one."""
    for node in model.nodes:
        if node.domain and find(node.domain, node.op) is not None:
            model = _with_result(model, node)
    return model


def _with_result(model: Model, node: OnnxNode) -> Model:
    operation = find(node.domain, node.op)
    shapes = [model.shape(v) for v in node.inputs]
    if operation is None or model.shape(node.outputs[0]) is not None or any(s is None for s in shapes):
        return model
    shape = operation.shape([s for s in shapes if s is not None], simple_attributes(node))
    reader = next((n for n in model.users(node.outputs[0]) if is_dequantize(n)), None)
    dtype = model.dtype(reader.input(2)) if reader is not None else model.dtype(node.inputs[0])
    return infer(model.with_nodes(model.nodes, types={node.outputs[0]: ValueType(dtype, tuple(shape))}))
