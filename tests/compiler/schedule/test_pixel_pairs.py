"""Pairs of pixels in tensors of few channels: the same bytes as without, and fewer cycles."""

import os

import numpy as np
import pytest

from intloom.compiler.ir import Conv, ConvTranspose, IntGraph
from intloom.compiler.schedule import compile_graph
from intloom.compiler.schedule.passes.pixel_pairs import pair_pixels
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.backend import IsaBackend, RtlBackend
from intloom.sim.compare import compare
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker
from tests.compiler.schedule.test_compile import assert_equal_to_golden, fitting_program

LARGE = preset("large")
WIDE = preset("nano").replace(rows=16, cols=16, lanes=4, axi_data_bits=128, vector_lanes=0, weight_kib=32)
"""Few channels leave half of a word unused."""


def stem(maker: GraphMaker, size: int, channels: int = 16, stride: int = 2) -> str:
    """An image, a convolution of few channels, and one that reads it."""
    x = maker.conv(maker.input(3, size, size), channels, 3, stride=2)
    return maker.conv(x, 32, 3, stride=stride)


def random_chain(seed: int) -> tuple[GraphMaker, IntGraph]:
    """Convolutions of few channels with kernels, strides and padding of all kinds; some tensors have two readers."""
    maker = GraphMaker(seed)
    rng = maker.rng
    x = maker.input(int(rng.choice([3, 4, 8, 20])), int(rng.integers(6, 14)), int(rng.integers(8, 40)))
    ends = []
    for _ in range(int(rng.integers(2, 5))):
        kernel = (int(rng.integers(1, 4)), int(rng.integers(1, 6)))
        stride = [(1, 1), (1, 1), (1, 2), (2, 2), (2, 1)][int(rng.integers(5))]
        pads = tuple(int(p) for p in rng.integers(0, 4, 4))
        if rng.integers(2):
            # The kernel reaches as far as the padding, which a transposed convolution needs.
            stride, pads = (1, 1), tuple(int(rng.integers(0, k)) for k in kernel * 2)
        _, height, width = maker.shape(x)
        if height + pads[0] + pads[2] < kernel[0] or width + pads[1] + pads[3] < kernel[1]:
            break
        channels, nine_bits = int(rng.choice([3, 5, 8, 8])), bool(rng.integers(3) == 0)
        made = maker.conv(x, channels, kernel, stride=stride, pads=pads, nine_bits=nine_bits)
        if rng.integers(6) == 0:
            ends.append(made)
        else:
            x = made
    if not maker.nodes or x in maker.inputs:
        ends.append(maker.conv(x, 4))
    else:
        ends.append(x)
    return maker, maker.graph(*ends)


def paired(graph: IntGraph, params: HardwareParams) -> int:
    """How many tensors have pairs of pixels."""
    return len(set(pair_pixels(graph, params).tensors) - set(graph.tensors))


def test_random_chains_give_the_same_bytes() -> None:
    first, found, transposed = int(os.environ["INTLOOM_SEED"]) % 1_000_000, 0, 0
    for seed in range(first, first + 60):
        maker, graph = random_chain(seed)
        changed = pair_pixels(graph, LARGE)
        inputs = maker.random_inputs()
        expected, outputs = (run_graph(g, inputs, match=LARGE.match) for g in (graph, changed))
        compare(expected, outputs).require_equal()
        found += paired(graph, LARGE)
        transposed += any(isinstance(n, ConvTranspose) for n in changed.nodes)
    assert found and transposed


def test_random_chains_as_programs() -> None:
    first, found = int(os.environ["INTLOOM_SEED"]) % 1_000_000, 0
    for seed in range(first, first + 25):
        maker, graph = random_chain(seed)
        params = WIDE.replace(scratch_kib=16) if seed % 2 else LARGE
        assert_equal_to_golden(graph, maker, fitting_program(graph, params, keep=seed % 5 == 0))
        found += paired(graph, params)
    assert found


@pytest.mark.slow
@pytest.mark.parametrize("stride", [1, 2])
def test_pairs_on_the_rtl(stride: int) -> None:
    maker = GraphMaker(3)
    graph = maker.graph(stem(maker, 24, channels=8, stride=stride))
    assert paired(graph, WIDE) == 1
    inputs = maker.random_inputs()
    expected = run_graph(graph, inputs, match=WIDE.match, keep=True)
    # The paired tensor is compared too, with the pixels of the graph.
    tensors = set(expected) - set(graph.inputs)
    for backend in (IsaBackend(keep_tensors=True), RtlBackend(keep_tensors=True)):
        result = backend.run(compile_graph(graph, WIDE), inputs)
        found = {**result.tensors, **result.outputs}
        assert set(found) == tensors
        for name in tensors:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=f"tensor {name}")


def test_kernel_and_stride_of_a_stem() -> None:
    maker = GraphMaker(1)
    graph = maker.graph(stem(maker, 32))
    writer, reader = pair_pixels(graph, LARGE).nodes
    assert isinstance(writer, Conv) and isinstance(reader, Conv)
    assert (writer.weights.shape, writer.strides) == ((32, 3, 3, 5), (2, 4))
    assert (reader.weights.shape, reader.strides, reader.pads) == ((32, 32, 3, 2), (2, 1), (1, 1, 1, 0))
    assert [n.name for n in graph.nodes] == [writer.name, reader.name]


def test_cycles_and_work_of_a_stem() -> None:
    """The writer takes half the cycles, the reader two thirds; the added zeros are no work."""
    maker = GraphMaker(1)
    graph = maker.graph(stem(maker, 256))
    kept = compile_graph(graph, LARGE, keep_intermediates=True)
    found = compile_graph(graph, LARGE)
    before, after = 128 * 128 * 3 + 64 * 64 * 9, 128 * 64 * 3 + 64 * 64 * 6
    assert kept.predicted_cycles > before
    assert after < found.predicted_cycles < after * 1.15
    assert [layer.macs for layer in found.layers] == [layer.macs for layer in kept.layers]


def bottleneck(maker: GraphMaker) -> str:
    """A 3x3 convolution to half of a word's channels, one back, and their sum with the input."""
    x = maker.conv(maker.input(3, 64, 64), 32, 1, table=False)
    return maker.add(maker.conv(maker.conv(x, 16, 3), 32, 3, table=False), x)


def test_a_bottleneck_has_pairs_and_its_sum_on_the_vector_unit() -> None:
    maker = GraphMaker(1)
    graph = maker.graph(bottleneck(maker))
    writer, reader = pair_pixels(graph, LARGE).nodes[1:3]
    assert isinstance(writer, Conv) and isinstance(reader, ConvTranspose)
    assert (writer.weights.shape, writer.strides) == ((32, 32, 3, 4), (1, 2))
    assert (reader.weights.shape, reader.strides, reader.pads) == ((32, 32, 3, 4), (1, 2), (1, 1, 1, 1))
    program = compile_graph(graph, LARGE)
    assert sum(i.kind is Kind.VADD for i in program.instructions)
    # Twelve tiles for each pair, and six for each pixel.
    assert program.predicted_cycles < 64 * 64 * (1 + 6 + 6) * 1.15
    assert_equal_to_golden(graph, maker, program)


@pytest.mark.parametrize(
    ("channels", "stride", "name"),
    [(17, 2, "large"), (16, 3, "large"), (16, 2, "base"), (16, 2, "small")],
)
def test_no_pairs_where_they_save_nothing(channels: int, stride: int, name: str) -> None:
    maker = GraphMaker(2)
    graph = maker.graph(stem(maker, 32, channels=channels, stride=stride))
    assert pair_pixels(graph, preset(name)).nodes == graph.nodes


def test_other_users_of_a_tensor_keep_its_shape() -> None:
    maker = GraphMaker(4)
    narrow = maker.conv(maker.input(3, 32, 32), 16, 3, stride=2)
    last = maker.conv(narrow, 32, 3, stride=2)
    assert paired(maker.graph(last), LARGE) == 1
    assert paired(maker.graph(last, narrow), LARGE) == 0
    pooled = maker.max_pool(narrow, 2, 2)
    assert paired(maker.graph(last, pooled), LARGE) == 0


def test_weights_that_would_not_fit_are_left_alone() -> None:
    """The kernel of the pairs is wider than the original one, which fits."""
    maker = GraphMaker(5)
    x = maker.conv(maker.input(120, 8, 16), 8, 3)
    graph = maker.graph(maker.conv(x, 16, 3, stride=2))
    assert paired(graph, WIDE.replace(weight_kib=32)) == 0
    assert paired(graph, WIDE.replace(weight_kib=256)) == 1
