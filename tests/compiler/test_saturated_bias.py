"""Biases near -2**31 and 2**31, which onnxruntime's quantizer writes for channels whose weights are almost zero."""

import random

import numpy as np
import onnx
import pytest

from intloom.common.errors import UnsupportedError
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import FoldedModel, fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.program.program import Program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.sim.backend import BackendRequest, backend_kind
from intloom.sim.rtl.options import RtlOptions
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal, graph_inputs, random_feeds, run_folded

BIASES = (-(2**31), 2**31 - 1, -(2**31) + 5, 2**31 - 200_001, -(2**31) + 900, 2**31 - 900, 2**30, 0)
WEIGHT_SCALE = 1e-9


def saturated(seed: int, *, reach: int = 3, kind: type = np.int8, stored: bool = True) -> onnx.ModelProto:
    """A convolution with `BIASES`; sums of several channels leave 32 bits. `stored` biases are int32, else float."""
    m = OnnxMaker(random.Random(seed))
    noise = np.random.default_rng(seed)
    x = m.image(8, 6, 6, zero=77)
    low, high = (0, 256) if kind is np.uint8 else (-reach, reach + 1)
    scales = np.full(8, WEIGHT_SCALE, np.float32)
    drawn = noise.integers(low, high, (8, 8, 3, 3)).astype(kind)
    drawn[0, 0, 0, 0] = high - 1
    values = m.constant(drawn)
    (weight,) = m.node("DequantizeLinear", [values, m.constant(scales), m.constant(np.zeros(8, kind))], axis=0)
    unit = (np.float32(x.scale) * scales).astype(np.float32)
    bias = m.constant(np.array(BIASES, np.int32) if stored else (np.array(BIASES) * unit).astype(np.float32))
    if stored:
        (bias,) = m.node("DequantizeLinear", [bias, m.constant(unit), m.constant(np.zeros(8, np.int32))], axis=0)
    (value,) = m.node("Conv", [x.name, weight, bias], kernel_shape=[3, 3], pads=[1] * 4)
    m.output(m.pair(value, (1, 8, 6, 6), float(np.float32(2**31 * WEIGHT_SCALE / 255 / 100)), zero=128))
    return m.model()


def target(found: FoldedModel) -> tuple[Target, str]:
    return next((v.target, v.reason) for v in found.assignments if v.op == "Conv")


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_sums_wrap_as_in_onnxruntime(kind: type, seed: int) -> None:
    found = assert_equal(saturated(seed, kind=kind), seed)
    assert target(found.folded)[0] is Target.ARRAY


def test_the_accelerator_wraps_too(seed: int) -> None:
    model = saturated(seed)
    found = fold_model(from_proto(model, name="saturated"))
    feeds = random_feeds(model, seed)
    program: Program = compile_graph(found.regions[0], preset("nano"))
    request = BackendRequest(graphs=lambda: found.regions, rtl=RtlOptions(), keep_tensors=False)
    made = backend_kind("isa").open(request).run(program, graph_inputs(found, feeds)).outputs
    expected = run_folded(found, feeds)
    for name, quant in found.output_quant.items():
        codes = made[name].astype(np.int32) + (128 if quant.unsigned else 0) - quant.zero_point
        np.testing.assert_array_equal(codes.astype(np.float32) * np.float32(quant.scale), expected[quant.source])


def test_sums_whose_wrap_is_not_defined_stay_with_the_host(seed: int) -> None:
    """onnxruntime computes with a float bias in float."""
    with pytest.raises(UnsupportedError, match=r"may leave 32 bits: up to 2\d{9} in channel \d"):
        _ = fold_model(from_proto(saturated(seed, stored=False), name="m")).graph
