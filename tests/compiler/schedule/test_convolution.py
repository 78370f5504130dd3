"""Runs of input blocks, and transposed convolutions as ordinary ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from intloom.compiler.schedule.stages.weights import (
    input_runs,
    transposed_passes,
)
from intloom.hw.spec.params import preset

BASE = preset("base")
WIDE = preset("small").replace(cols=16, strip=32, lut_products=0)
NARROW = preset("base").replace(cols=8, lanes=8, lut_products=0)


@given(st.sampled_from([BASE, WIDE, NARROW]), st.integers(1, 12), st.integers(1, 9), st.integers(1, 9))
def test_runs_cover_every_channel_that_a_block_depends_on(params, group, each, per_group):
    channels = group * each
    blocks = range(-(-channels // params.cols))
    runs = input_runs(blocks, params, channels, per_group, group)
    assert [b for r in runs for b in range(r.first, r.first + r.count)] == list(blocks)
    total = -(-per_group * group // params.rows)
    for run in runs:
        for k in range(run.count):
            start = run.start + k * run.step
            assert 0 <= start <= start + run.blocks <= total
            members = range((run.first + k) * params.cols, min((run.first + k + 1) * params.cols, channels))
            for m in members:
                first = m // each * per_group
                assert start * params.rows <= first
                assert first + per_group <= (start + run.blocks) * params.rows


@given(*(st.integers(1, 4) for _ in range(3)), st.integers(0, 2), st.integers(1, 5))
def test_passes_of_a_transposed_convolution_meet_every_tap_once(kernel, stride, dilation, pad, size):
    weights = np.arange(1, kernel * kernel + 1, dtype=np.int8).reshape(1, 1, kernel, kernel)
    reach = (kernel - 1) * dilation + 1
    out = (size - 1) * stride + reach - 2 * pad
    if out < 1:
        return
    expected = {}
    for i in range(size):
        for k in range(kernel):
            y = i * stride + k * dilation - pad
            if 0 <= y < out:
                expected.setdefault(y, set()).add((i, k))
    for geometry, part in transposed_passes(weights, (stride, stride), (dilation, dilation), (pad, pad)):
        rows = [int(v - 1) // kernel for v in part[0, 0, :, 0]] if part.any() else []
        for q, y in enumerate(range(geometry.offset[0], out, stride)):
            taps = {(geometry.first[0] + q + t * geometry.dilation[0], k) for t, k in enumerate(rows)}
            inside = {(i, k) for i, k in taps if 0 <= i < size}
            blank_column = not any((geometry.offset[1] + pad - k * dilation) % stride == 0 for k in range(kernel))
            assert inside == (set() if blank_column else expected.get(y, set()))
