"""Maxima over large windows, as several maxima over small ones."""

import random

import pytest

from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.ir import MaxPool
from tests.support.lowered import compared
from tests.support.onnx_maker import OnnxMaker, Value
from tests.support.parity import Parity

Pads = tuple[int, int, int, int]


def pool(m: OnnxMaker, x: Value, kernel: tuple[int, int], pads: Pads, stride: int = 1) -> None:
    """A maximum of `x` as an output."""
    size = [(x.shape[2 + a] + pads[a] + pads[a + 2] - kernel[a]) // stride + 1 for a in (0, 1)]
    (value,) = m.node("MaxPool", [x.name], kernel_shape=list(kernel), strides=[stride] * 2, pads=list(pads))
    m.output(m.pair(value, (1, x.shape[1], *size), x.scale))


def kernels(found: Parity) -> list[tuple[int, int]]:
    """The windows of all maxima."""
    return [n.kernel for n in found.folded.graph.nodes if isinstance(n, MaxPool)]


@pytest.mark.parametrize(
    ("kernel", "pads", "expected"),
    [
        ((9, 9), (4, 4, 4, 4), [(5, 5), (5, 5)]),
        ((13, 7), (6, 3, 6, 3), [(5, 5), (5, 1), (5, 3)]),
        ((6, 6), (2, 3, 3, 2), [(5, 5), (2, 2)]),
        ((6, 5), (2, 0, 2, 4), [(5, 1), (2, 5)]),
        ((9, 3), (4, 1, 2, 1), [(5, 1), (5, 3)]),
        # A window that may hold nothing but padding, or that has none on one side, stays whole.
        ((7, 7), (0, 0, 0, 0), [(7, 7)]),
        ((8, 8), (6, 6, 2, 2), [(8, 8)]),
        ((65, 3), (32, 1, 32, 1), [(65, 3)]),
    ],
)
def test_large_windows(
    kernel: tuple[int, int], pads: Pads, expected: list[tuple[int, int]], rng: random.Random, seed: int
) -> None:
    m = OnnxMaker(rng)
    pool(m, m.conv(m.image(3, 11, 14), 5), kernel, pads)
    assert kernels(compared(m, seed)) == expected


def test_windows_of_one_tensor_share_their_steps(rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 12, 12), 5)
    for size in (5, 9, 13):
        pool(m, x, (size, size), (size // 2,) * 4)
    assert kernels(compared(m, seed)) == [(5, 5)] * 3


def test_windows_with_a_stride_stay_whole(rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    pool(m, m.conv(m.image(3, 12, 12), 5), (9, 9), (4, 4, 4, 4), stride=2)
    assert kernels(compared(m, seed)) == [(9, 9)]


def test_random_windows(rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    x = m.conv(m.image(2, rng.randint(1, 12), rng.randint(1, 12)), 4)
    for _ in range(6):
        kernel = rng.randint(1, 13), rng.randint(1, 13)
        # A pad is less than the kernel, and the window fits.
        pads = tuple(rng.randint(0, k - 1) for k in kernel * 2)
        if all(x.shape[2 + a] + pads[a] + pads[a + 2] >= kernel[a] for a in (0, 1)):
            pool(m, x, kernel, pads)
    if not m.outputs:
        pool(m, x, (1, 1), (0, 0, 0, 0))
    compared(m, seed)


@pytest.mark.parametrize(
    ("op", "size", "axes", "expected"),
    [
        ("GlobalMaxPool", (90, 86), [2, 3], [(4, 4), (23, 22)]),
        ("ReduceMax", (97, 85), [2, 3], [(4, 4), (25, 22)]),
        ("ReduceMax", (6, 1030), [3], [(1, 4), (1, 4), (1, 65)]),
        ("GlobalMaxPool", (1, 260), [2, 3], [(1, 4), (1, 65)]),
    ],
)
def test_maxima_of_whole_axes(op, size, axes, expected, rng, seed):
    """Of more pixels than the scratchpad or a window holds: first of blocks, the last of which may be smaller."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, *size), 2, 1)
    (value,) = m.node(op, [x.name], **({"axes": axes, "keepdims": 1} if op == "ReduceMax" else {}))
    m.output(m.pair(value, tuple(1 if a in axes else n for a, n in enumerate(x.shape)), x.scale))
    assert kernels(compared(m, seed)) == expected


def test_windows_that_are_too_long_stay_with_the_host(rng):
    m = OnnxMaker(rng)
    pool(m, m.image(1, 4, 400), (1, 300), (0, 0, 0, 0))
    (found,) = (a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == "MaxPool")
    assert (found.target, found.row) == (Target.HOST, 20)
