"""Biases whose number fits neither channels nor scales are refused by name."""

import numpy as np
import pytest

from compiler.fold.lowering import Verdict
from compiler.frontend import fold_model
from compiler.importer import from_proto
from tests.support.onnx_maker import OnnxMaker


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("quantised", [True, False])
def test_a_bias_of_another_length(count, quantised, rng):
    m = OnnxMaker(rng)
    x = m.image(3, 6, 6)
    weight, scales = m.weights((4, 3, 1, 1), 0)
    bias = m.bias(np.resize(scales, count), x.scale) if quantised else m.constant(np.ones(count, np.float32))
    (value,) = m.node("Conv", [x.name, weight, bias])
    m.output(m.pair(value, (1, 4, 6, 6), 0.05))
    found = fold_model(from_proto(m.model(), name="m"))
    verdict = next(v for v in found.verdicts if v.op == "Conv")
    if count != 1:
        assert verdict.verdict is Verdict.HOST
        assert "bias" in verdict.reason
