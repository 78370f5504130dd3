"""GELU between two quantized tensors is a table of the layer before it, in every form in which exporters write it."""

import numpy as np
import pytest

from intloom.compiler.fold.target import Target
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker

MS = {"domain": "com.microsoft"}
SHAPE = (1, 8, 6, 6)


def step(m, op, inputs, quantized):
    """An operator, with or without a pair after it."""
    (value,) = m.node(op, inputs)
    return m.pair(value, SHAPE, 0.02).name if quantized else value


def by_error_function(m, x, quantized=False):
    root, one, half = (m.constant(np.float32(v)) for v in (2**0.5, 1, 0.5))
    y = step(m, "Erf", [step(m, "Div", [x, root], quantized)], quantized)
    y = step(m, "Mul", [x, step(m, "Add", [y, one], quantized)], quantized)
    return m.node("Mul", [y, half])[0]


def by_tanh(m, x):
    three, cubed, root, one, half = (m.constant(np.float32(v)) for v in (3, 0.044715, (2 / np.pi) ** 0.5, 1, 0.5))
    y = step(m, "Mul", [step(m, "Pow", [x, three], False), cubed], False)
    y = step(m, "Mul", [step(m, "Add", [x, y], False), root], False)
    y = step(m, "Add", [step(m, "Tanh", [y], False), one], False)
    return m.node("Mul", [step(m, "Mul", [x, y], False), half])[0]


FORMS = {
    "Gelu": (20, lambda m, x: m.node("Gelu", [x])[0]),
    "Gelu, tanh": (20, lambda m, x: m.node("Gelu", [x], approximate="tanh")[0]),
    "Gelu of onnxruntime": (17, lambda m, x: m.node("Gelu", [x], **MS)[0]),
    "FastGelu": (17, lambda m, x: m.node("FastGelu", [x], **MS)[0]),
    "QuickGelu": (17, lambda m, x: m.node("QuickGelu", [x], alpha=1.702, **MS)[0]),
    "chain": (17, by_error_function),
    "chain, quantized after every operator": (17, lambda m, x: by_error_function(m, x, quantized=True)),
    "tanh chain": (17, by_tanh),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_gelu_is_a_table(form, dtype, rng, seed):
    opset, build = FORMS[form]
    m = OnnxMaker(rng, opset=opset, dtype=dtype)
    x = m.conv(m.image(4, 6, 6), SHAPE[1])
    m.output(m.pair(build(m, x.name), SHAPE, x.scale / 2))
    found = compared(m, seed)
    operators = {a.op for a in found.folded.assignments if a.target is Target.TABLE} - {"QuantizeLinear"}
    assert operators & {"Gelu", "FastGelu", "QuickGelu", "Erf", "Tanh"}
    assert not [a.op for a in found.folded.assignments if a.target in (Target.HOST, Target.VECTOR)]
    # The table is part of the convolution.
    assert kinds(found) == ["Conv"]
