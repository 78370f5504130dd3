"""Golden convolutions equal seven nested loops over `intloom.hw.spec.arith`."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.compiler.ir import Conv, ConvTranspose, IntGraph, Tensor
from intloom.compiler.ir.verify import verify
from intloom.hw.spec.arith import RoundingMode, Scale, requantize
from intloom.sim.golden import run_graph


def random_conv(rng: random.Random, kind: type[Conv]) -> tuple[IntGraph, Conv]:
    """A graph of one node with random geometry."""
    noise = np.random.default_rng(rng.getrandbits(32))
    group = rng.choice([1, 1, 2, 3])
    each_in, each_out = rng.choice([1, 2]), rng.choice([1, 2])
    kernel = (rng.randint(1, 3), rng.randint(1, 3))
    zero_point = rng.choice([None, -128, -1, 0, 1, 127])
    channels = each_out * group
    zero = rng.randint(-128, 127)
    weights = noise.integers(-128, 128, (channels, each_in, *kernel)).astype(np.int8)
    options = {
        "weights": weights if zero_point is None else weights - np.int16(zero_point),
        "bias": noise.integers(-5000, 5000, channels).astype(np.int32),
        "mantissa": noise.integers(1 << 23, 1 << 24, channels).astype(np.uint32),
        "shift": noise.integers(30, 34, channels).astype(np.uint8),
        "zp_in": zero,
        "zp_out": rng.randint(-128, 127),
        "pads": tuple(rng.randint(0, 1) for _ in range(4)),
        "strides": (rng.randint(1, 2), rng.randint(1, 2)),
        "dilations": (rng.randint(1, 2), rng.randint(1, 2)),
        "group": group,
        "table": bytes(noise.integers(0, 256, 256).astype(np.uint8)) if rng.random() < 0.5 else None,
    }
    node = kind(name="n", inputs=("x",), output="y", **options)
    size = (rng.randint(5, 7), rng.randint(5, 7))
    tensors = {"x": Tensor("x", (1, each_in * group, *size), 1.0, zero, False)}
    tensors["y"] = Tensor("y", (1, channels, *out_size(node, size)), 1.0, node.zp_out, False)
    graph = IntGraph("g", tensors, (node,), ("x",), ("y",))
    verify(graph)
    return graph, node


def out_size(node: Conv, size: tuple[int, int]) -> tuple[int, int]:
    spans = [node.dilations[i] * (node.weights.shape[2 + i] - 1) + 1 for i in (0, 1)]
    if isinstance(node, ConvTranspose):
        return tuple((size[i] - 1) * node.strides[i] + spans[i] - node.pads[i] - node.pads[i + 2] for i in (0, 1))
    return tuple((size[i] + node.pads[i] + node.pads[i + 2] - spans[i]) // node.strides[i] + 1 for i in (0, 1))


def plain_sums(node: Conv, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sums by loops, straight from the definition."""
    weights = node.weights.astype(np.int64)
    sums = np.zeros(shape, np.int64) + node.bias[:, None, None]
    each = shape[0] // node.group
    transposed = isinstance(node, ConvTranspose)
    spaces = (range(shape[0]), range(weights.shape[1]), range(weights.shape[2]), range(weights.shape[3]))
    positions = x.shape[1:] if transposed else shape[1:]
    for m, c, ky, kx in product(*spaces):
        channel = m // each * weights.shape[1] + c
        for i, j in np.ndindex(*positions):
            far = i * node.strides[0] + ky * node.dilations[0] - node.pads[0]
            off = j * node.strides[1] + kx * node.dilations[1] - node.pads[1]
            if transposed:
                if 0 <= far < shape[1] and 0 <= off < shape[2]:
                    sums[m, far, off] += (int(x[channel, i, j]) - node.zp_in) * int(weights[m, c, ky, kx])
            else:
                inside = 0 <= far < x.shape[1] and 0 <= off < x.shape[2]
                sums[m, i, j] += (int(x[channel, far, off]) if inside else node.zp_in) * int(weights[m, c, ky, kx])
    return sums


@pytest.mark.parametrize("kind", [Conv, ConvTranspose])
@pytest.mark.parametrize("match", list(RoundingMode))
def test_equals_plain_loops(kind: type[Conv], match: RoundingMode, rng: random.Random) -> None:
    for _ in range(6):
        graph, node = random_conv(rng, kind)
        x = np.random.default_rng(rng.getrandbits(32)).integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)
        made = run_graph(graph, {"x": x}, match=match)["y"][0]
        sums = plain_sums(node, x[0], made.shape)
        scales = [Scale(int(m), int(s)) for m, s in zip(node.mantissa, node.shift, strict=True)]
        for (m, i, j), total in np.ndenumerate(sums):
            wanted = requantize(int(total), scales[m], node.zp_out, match)
            if node.table is not None:
                wanted = int(np.frombuffer(node.table, np.int8)[wanted & 0xFF])
            assert made[m, i, j] == wanted


@given(st.integers(1, 3000))
def test_long_sums_of_extreme_values_stay_exact(channels: int) -> None:
    """All products at their largest: beyond 1,024 of them float32 would lose bits."""
    node = Conv(
        name="n", inputs=("x",), output="y",
        weights=np.full((1, channels, 1, 1), 127, np.int8), bias=np.array([1], np.int32),
        mantissa=np.array([1 << 23], np.uint32), shift=np.array([23], np.uint8), zp_in=0, zp_out=0,
    )  # fmt: skip
    tensors = {"x": Tensor("x", (1, channels, 1, 1), 1.0, 0, False), "y": Tensor("y", (1, 1, 1, 1), 1.0, 0, False)}
    x = np.full((1, channels, 1, 1), -127, np.int8)
    x[0, : channels // 2] = 127
    graph = IntGraph("g", tensors, (node,), ("x",), ("y",))
    total = 127 * 127 * (2 * (channels // 2) - channels) + 1
    assert run_graph(graph, {"x": x}, match=RoundingMode.EXACT)["y"].item() == max(-128, min(127, total))
