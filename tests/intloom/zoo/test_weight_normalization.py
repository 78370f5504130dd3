"""Quantized, no tensor of any zoo network is stuck, and hardly any lies at the ends of its range."""

import onnx
import pytest

from intloom.common.cache.models import ModelCache
from intloom.images import synthetic_image
from intloom.quantization import QuantizeOptions, measure_noise, quantize
from intloom.zoo import ZOO, build

MOST_AT_ENDS = 0.05
FEW_VALUES = 2
"""A tensor of a few values may have this many of them at an end."""
LEAST_CODES = 12
LARGE = ("yolov8s", "yolov8m")


def size_of(name):
    """Big enough that the coarsest map is no single pixel."""
    return {32: 128, 16: 64}.get(ZOO[name].multiple, 32)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ZOO if n not in LARGE] + list(LARGE))
def test_activations_are_lively(name, tmp_path):
    """Judged on an image that calibration has not seen, zeros of a ReLU included."""
    size = size_of(name)
    (tmp_path / "f.onnx").write_bytes(build(name, size).SerializeToString())
    cache, options = ModelCache(tmp_path / "cache"), QuantizeOptions(samples=4)
    done = quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", options=options, cache=cache)
    reference, quantized = onnx.load(done.preprocessed.path), onnx.load(tmp_path / "q.onnx")
    noise = measure_noise(reference, quantized, synthetic_image(size, size, 77)[None])
    worst = sorted(noise, key=lambda n: n.at_ends)[-3:]
    print(f"{name} at {size}, {len(noise)} tensors; fewest codes {min(n.distinct for n in noise)}; most at an end:")
    print("\n".join(f"  {100 * n.at_ends:.1f} % (clipped {100 * n.saturated:.2f} %) {n.tensor}" for n in worst))
    assert len(noise) >= 4
    for n in noise:
        allowed = max(MOST_AT_ENDS, FEW_VALUES / n.values)
        assert n.at_ends <= allowed and n.saturated <= allowed, n
        assert n.distinct >= min(LEAST_CODES, n.values), n
