"""Text form of a `Model`, one node a line, for dumps after passes."""

from intloom.compiler.importer.model import Attribute, Constant, Model, Opaque


def model_text(model: Model) -> str:
    """Format inputs, nodes and outputs with types and shapes; constants appear by name only."""
    lines = [f"model {model.name}, opset {model.opset}"]
    lines += [f"input  {_value(model, v)}" for v in model.inputs]
    for node in model.nodes:
        attributes = "".join(f", {k}={_attribute(v)}" for k, v in sorted(node.attributes.items()))
        made = ", ".join(_value(model, v) for v in node.outputs)
        op = f"{node.domain}::{node.op}" if node.domain else node.op
        lines.append(f"{node.name}: {made} = {op}({', '.join(node.inputs)}{attributes})")
    lines += [f"output {_value(model, v)}" for v in model.outputs]
    return "\n".join(lines) + "\n"


def _value(model: Model, name: str) -> str:
    shape = model.shape(name)
    size = "?" if shape is None else "x".join(map(str, shape)) or "scalar"
    return f"{name}:{model.dtype(name) or '?'}[{size}]"


def _attribute(value: Attribute) -> str:
    if isinstance(value, Constant):
        return f"{value.dtype}{list(value.array.shape)}"
    return "..." if isinstance(value, Opaque) else repr(value)
