"""An input of the model that is an output too."""

import random

import numpy as np

from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import folded, random_feeds, run_folded, run_onnxruntime


def test_an_output_that_is_an_input(seed: int) -> None:
    m = OnnxMaker(random.Random(seed))
    m.output(m.conv(m.image(3, 8, 8), 8))
    model = m.model()
    model.graph.output.append(model.graph.input[0])
    feeds, names = random_feeds(model, seed), [o.name for o in model.graph.output]
    made, expected = run_folded(folded(model), feeds), run_onnxruntime(model.SerializeToString(), feeds, names)
    for name in names:
        np.testing.assert_array_equal(made[name], expected[name])
