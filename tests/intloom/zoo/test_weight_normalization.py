"""No quantized activation of a zoo network is constant, and few values are at the ends of the range."""

import onnx
import pytest

from intloom.images import seeded_input
from intloom.quantization import QuantizeOptions, measure_noise, quantize
from intloom.quantization.samples import input_specs
from intloom.zoo import ZOO, build
from tests.support.nightly import with_nightly

MOST_AT_ENDS = 0.06
"""5 % of the values of some SiLU lie within a step of its minimum, on some processors one more than on others."""
WORDS = "minilm_l6"
"""Synthetic indices are 0 and 1: the ranges of two words are not those of others."""
FEW_VALUES = 2
"""A tensor of a few values may have this many of them at an end."""
LEAST_CODES = 12
SAMPLES = {"yolo11s": 8, "ocr_detector": 8}
"""The attention of YOLO11 then has 16 tokens, and gates of the text detector have 6 channels of one pixel: both
differ more from image to image.
"""
OTHER_SIZES_AND_HEADS = (
    "yolov8s",
    "yolov8m",
    "yolo11s",
    *(f"{n}-{t}" for n in ("yolov8n", "yolo11n", "yolo26n") for t in ("seg", "pose")),
)
"""Of networks that `make test` has too."""

DAILY = (
    "yolov8n", "mobilenet_v3_large", "ocr_detector", "vit_tiny",
    "tiny", "c2psa", "c2f", "sppf", "residual", "mini_yolo",
)  # fmt: skip
"""SiLU, gates with hard functions, transposed convolutions, attention with LayerNorm and GELU, and the small ones."""


def size_of(name):
    """An image size at which the smallest feature map has more than one pixel."""
    entry = ZOO[name]
    return entry.measured_size if entry.multiple > 16 else {16: 64}.get(entry.multiple, 32)


@pytest.mark.slow
@pytest.mark.parametrize("name", with_nightly([n for n in ZOO if n != WORDS], ZOO.keys() - set(DAILY)))
def test_activations_are_not_degenerate(name, tmp_path):
    """Measured on an image outside the calibration set; zeros of a ReLU count as values at an end."""
    size = size_of(name)
    (tmp_path / "f.onnx").write_bytes(build(name, size).SerializeToString())
    cache, options = tmp_path / "cache", QuantizeOptions(samples=SAMPLES.get(name, 4))
    done = quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", options=options, cache=cache)
    reference, quantized = onnx.load(done.preprocessed.path), onnx.load(tmp_path / "q.onnx")
    noise = measure_noise(
        reference, quantized, {(spec := input_specs(reference)[0]).name: seeded_input(spec.shape, 77)}
    )
    worst = sorted(noise, key=lambda n: n.at_ends)[-3:]
    print(f"{name} at {size}, {len(noise)} tensors; fewest codes {min(n.distinct for n in noise)}; most at an end:")
    print("\n".join(f"  {100 * n.at_ends:.1f} % (clipped {100 * n.saturated:.2f} %) {n.tensor}" for n in worst))
    assert len(noise) >= 4
    for n in noise:
        allowed = max(MOST_AT_ENDS, FEW_VALUES / n.values)
        assert n.at_ends <= allowed and n.saturated <= allowed, n
        assert n.distinct >= min(LEAST_CODES, n.values), n
