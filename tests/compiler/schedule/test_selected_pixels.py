"""A convolution of selected pixels reads the image: the same bytes, and no pass of the array for a selection."""

import os
from itertools import product
from typing import Any

import numpy as np
import pytest

from intloom.compiler.ir import Conv, IntGraph
from intloom.compiler.program.program import Layout
from intloom.compiler.schedule import compile_graph
from intloom.compiler.schedule.passes.selected_pixels import read_images
from intloom.hw.spec.arith import scale_from_float
from intloom.hw.spec.params import PRESETS, preset
from intloom.sim.backend import RtlBackend
from intloom.sim.compare import compare
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker
from tests.compiler.schedule.test_compile import assert_equal_to_golden, fitting_program
from tests.support.golden import assert_golden

BASE = preset("base")


def select(m: GraphMaker, x: str, start: tuple[int, int], step: tuple[int, int], **changes: Any) -> str:
    """Pixels `start + step * (y, x)`, as Slice is lowered."""
    channels, height, width = m.shape(x)
    weights = np.zeros((channels, 1, step[0], step[1]), np.int8)
    weights[..., start[0], start[1]] = 1
    one, zero = scale_from_float(1.0), m.tensors[x].zero_point
    fields: dict[str, Any] = {
        "weights": weights,
        "bias": np.full(channels, -zero, np.int32),
        "mantissa": np.full(channels, one.mantissa, np.uint32),
        "shift": np.full(channels, one.shift, np.uint8),
        "zp_in": zero,
        "zp_out": zero,
        "strides": step,
        "group": channels,
    }
    return m.node(Conv, (x,), (channels, height // step[0], width // step[1]), **fields | changes)


def focus(m: GraphMaker, x: str, step: tuple[int, int] = (2, 2)) -> str:
    """All selections of an image, joined in random order."""
    starts = list(product(range(step[0]), range(step[1])))
    m.rng.shuffle(starts)
    parts = [select(m, x, (int(row), int(column)), step) for row, column in starts]
    return m.concat(*parts)


def with_focus(m: GraphMaker, channels: int, size: tuple[int, int], step: tuple[int, int] = (2, 2)) -> str:
    """An image, the selections, and a convolution of them whose padding is the image's zero point."""
    joined = focus(m, m.input(channels, size[0] * step[0], size[1] * step[1]), step)
    kernel = (int(m.rng.integers(1, 4)), int(m.rng.integers(1, 4)))
    pads = (1, int(m.rng.integers(0, 2)), int(m.rng.integers(0, 2)), 1)
    stride = (int(m.rng.integers(1, 3)), 1)
    made = m.conv(joined, int(m.rng.integers(1, 30)), kernel, pads=pads, stride=stride)
    last = m.nodes[-1]
    assert isinstance(last, Conv)
    object.__setattr__(last, "zp_in", m.tensors[m.inputs[0]].zero_point)
    return made


def nodes(graph: IntGraph) -> int:
    """How many nodes are left."""
    return len(read_images(graph, BASE).nodes)


def test_random_selections() -> None:
    first, merged = int(os.environ["INTLOOM_SEED"]) % 1_000_000, 0
    for seed in range(first, first + 30):
        m = GraphMaker(seed)
        step = (int(m.rng.integers(1, 3)), int(m.rng.integers(1, 3)))
        size = (int(m.rng.integers(3, 9)), int(m.rng.integers(3, 12)))
        graph = m.graph(with_focus(m, int(m.rng.choice([1, 3, 4, 7])), size, step))
        inputs = m.random_inputs()
        changed = read_images(graph, BASE)
        expected, outputs = (run_graph(g, inputs, match=BASE.match) for g in (graph, changed))
        compare(expected, outputs).require_equal()
        merged += len(changed.nodes) < len(graph.nodes)
        params = PRESETS[str(m.rng.choice(["nano", "small", "base", "large"]))]
        assert_equal_to_golden(graph, m, fitting_program(graph, params, keep=seed % 5 == 0))
    assert merged


@pytest.mark.slow
def test_a_focus_layer_on_the_rtl() -> None:
    m = GraphMaker(3)
    graph = m.graph(with_focus(m, 3, (10, 12)))
    params = preset("nano").replace(rows=16, cols=16, lanes=4, axi_data_bits=128, vector_lanes=0, weight_kib=32)
    assert_golden(graph, compile_graph(graph, params), m.random_inputs(), RtlBackend())


def test_the_image_is_read_packed() -> None:
    m = GraphMaker(1)
    program = compile_graph(m.graph(m.conv(focus(m, m.input(3, 64, 64)), 16, 3, stride=1)), BASE)
    assert program.tensor("in0").layout is Layout.PIXELS4
    (first, *rest) = [layer.predicted_cycles for layer in program.layers][::-1]
    assert first > 32 * 32 * 6 * 2
    assert not any(rest)


@pytest.mark.parametrize(
    "changes",
    [
        {"table": bytes(range(256))},
        {"bias": np.ones(3, np.int32)},
        {"zp_out": 5},
        {"pads": (1, 1, 1, 1)},
        {"weights": np.ones((3, 1, 2, 2), np.int8)},
    ],
)
def test_other_convolutions_are_no_selections(changes: dict[str, Any]) -> None:
    m = GraphMaker(1)
    x = m.input(3, 16, 16)
    graph = m.graph(m.conv(m.concat(select(m, x, (0, 0), (2, 2), **changes), select(m, x, (1, 0), (2, 2))), 8, 3))
    assert nodes(graph) == len(graph.nodes)


def test_selections_that_others_read_stay() -> None:
    m = GraphMaker(1)
    x = m.input(3, 16, 16)
    a, b = select(m, x, (0, 0), (2, 2)), select(m, x, (0, 1), (2, 2))
    last = m.conv(m.concat(a, b), 8, 3)
    assert nodes(m.graph(last)) == 1
    assert nodes(m.graph(last, a)) == 4
    other = m.max_pool(a, 2, 2)
    assert nodes(m.graph(last, other)) == 5


def test_equal_selections_and_those_of_two_images_stay() -> None:
    m = GraphMaker(1)
    x, y = m.input(3, 16, 16), m.input(3, 16, 16)
    twice = m.conv(m.concat(select(m, x, (0, 0), (2, 2)), select(m, x, (0, 0), (2, 2))), 8, 3)
    both = m.conv(m.concat(select(m, x, (0, 0), (2, 2)), select(m, y, (0, 0), (2, 2))), 8, 3)
    graph = m.graph(twice, both)
    assert nodes(graph) == len(graph.nodes)
