"""Elementwise operators."""

from intloom.compiler.importer import Model, OnnxNode

# fmt: off
ELEMENTWISE = frozenset({
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Div",
    "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Max",
    "Min", "Mish", "Mul", "Neg", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
    "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "FastGelu",
    "QuickGelu",
})
# fmt: on
"""Operators whose result at an index depends only on the operands at that index."""


def is_elementwise(model: Model, node: OnnxNode) -> bool:
    """Whether the node is elementwise and its constants are scalars."""
    if node.op not in ELEMENTWISE or len(node.outputs) != 1:
        return False
    return all(model.constants[v].array.size == 1 for v in node.inputs if v in model.constants)
