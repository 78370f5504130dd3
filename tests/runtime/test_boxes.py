"""The firmware's boxes equal those of the Python example, for random outputs of a detection network."""

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from examples.detect import decode
from tests.runtime.support import INCLUDES, RUNTIME, SANITIZERS, STRICT

SIZE = 128
SCALE, ZERO = 0.05, -7


def reference(heads: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The output `[1, 4 + classes, anchors]` of YOLOv8's float tail."""
    columns = []
    for distances, classes in heads:
        _, rows, cols = classes.shape
        real = SCALE * (distances.astype(float) - ZERO)
        weights = np.exp(real.reshape(4, 16, rows, cols))
        left, top, right, bottom = (weights * np.arange(16)[:, None, None]).sum(1) / weights.sum(1)
        y, x = np.mgrid[:rows, :cols] + 0.5
        stride = SIZE / cols
        box = np.stack([x + (right - left) / 2, y + (bottom - top) / 2, left + right, top + bottom]) * stride
        scores = 1 / (1 + np.exp(-SCALE * (classes.astype(float) - ZERO)))
        columns.append(np.concatenate([box, scores]).reshape(4 + len(classes), -1))
    return np.concatenate(columns, axis=1)[None].astype(np.float32)


@pytest.mark.parametrize(("unsigned", "share", "scores"), [(False, 0.01, 148), (True, 0.01, 148), (False, 0.6, 4)])
def test_boxes_equal_the_example(unsigned: bool, share: float, scores: int, tmp_path: Path, seed: int) -> None:
    """A few boxes with a score each, and more than the firmware keeps, with few different scores."""
    rng = np.random.default_rng(seed)
    heads = []
    text = struct.pack("5Ifi", 0, 3, SIZE, SIZE, 0, 1.0, 0)
    for side in (16, 8, 4):
        distances = rng.integers(-128, 128, (64, side, side)).astype(np.int8)
        classes = rng.integers(-128, -20, (5, side, side)).astype(np.int8)
        likely = rng.random((5, side, side)) < share
        classes[likely] = rng.choice(scores, likely.sum(), replace=scores < 148).astype(np.int16) - 20 + 148 - scores
        heads.append((distances, classes))
        for tensor in (distances, classes):
            text += struct.pack("5Ifi", 1, *tensor.shape, unsigned, SCALE, ZERO)
            text += (tensor.view(np.uint8) ^ (0x80 if unsigned else 0)).tobytes()
    (tmp_path / "outputs").write_bytes(text)
    sources = [str(RUNTIME / "soc" / "boxes.c"), str(Path(__file__).with_name("boxes_host.c"))]
    flags = [*STRICT, *SANITIZERS, *INCLUDES, f"-I{RUNTIME / 'soc'}"]
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", str(tmp_path / "boxes")], check=True)
    done = subprocess.run([tmp_path / "boxes", tmp_path / "outputs"], capture_output=True, text=True, check=True)
    got = np.array([[float(v) for v in line.split()] for line in done.stdout.splitlines()]).reshape(-1, 6)
    found = decode(reference(heads), 0.25, 0.5, 8)
    assert len(got) == len(found.boxes)
    assert got[:, 0].tolist() == found.classes.tolist()
    np.testing.assert_allclose(got[:, 1], found.scores, atol=1e-4)
    np.testing.assert_allclose(got[:, 2:], found.boxes, atol=0.01)
