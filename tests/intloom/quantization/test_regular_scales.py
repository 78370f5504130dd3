"""The quantizer moves scales with which onnxruntime's sums round ties irregularly."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from intloom.compiler.frontend import irregular_scales
from intloom.compiler.importer import load_model
from intloom.quantization import QuantizeOptions, quantize, static
from intloom.quantization.options import Calibration, Form
from tests.support.given_model import given_model

SHAPE = (1, 4, 2, 2)
IRREGULAR_SEED = 29
"""Ranges of operands and sums depend on additions alone, which round alike on every processor."""


def a_sum(folder: Path) -> tuple[Path, Path]:
    """A float model that adds two tensors, and calibration inputs with which the sum rounds ties irregularly."""
    model, samples = folder / "sum.onnx", folder / "samples.npz"
    node = helper.make_node("Add", ["a", "b"], ["y"], name="sum")
    onnx.save(given_model([node], {"a": SHAPE, "b": SHAPE}, {"y": SHAPE}), model)
    rng = np.random.default_rng(IRREGULAR_SEED)
    np.savez(samples, **{name: rng.normal(size=(2, *SHAPE[1:])).astype(np.float32) for name in "ab"})
    return model, samples


def constants(path: Path) -> dict[str, float]:
    return {c.name: numpy_helper.to_array(c).item() for c in onnx.load(path).graph.initializer}


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("calibration", [Calibration.MINMAX, Calibration.AUTO])
def test_an_irregular_sum_gets_a_larger_scale_and_nothing_else_changes(tmp_path, monkeypatch, form, calibration):
    model, samples = a_sum(tmp_path)
    options = QuantizeOptions(form=form, calibration=calibration)
    moved, kept = tmp_path / "moved.onnx", tmp_path / "kept.onnx"
    quantize(model, moved, samples, options)
    monkeypatch.setattr(static, "FACTORS", ())
    quantize(model, kept, samples, options)
    assert irregular_scales(load_model(kept)) == ("y_scale",)
    assert irregular_scales(load_model(moved)) == ()
    before, after = constants(kept), constants(moved)
    assert 1.0 < after.pop("y_scale") / before.pop("y_scale") < 1.003
    assert after == before
