"""Depthwise convolutions with kernel taps on the array's rows: exact results, weights per tap, and cycles per word."""

import os
from itertools import islice

import numpy as np
import pytest

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.program import Program
from intloom.compiler.schedule import compile_graph
from intloom.compiler.schedule.stages.depthwise import depthwise_cut
from intloom.compiler.schedule.stages.placement import Rect
from intloom.compiler.schedule.stages.weights import Geometry
from intloom.hw.spec.isa import ConvMode, Kind
from intloom.hw.spec.params import PRESETS, HardwareParams, preset
from intloom.sim.backend import RtlBackend
from intloom.sim.golden import run_graph
from tests.compiler.schedule.test_compile import assert_equal_to_golden, fitting_program
from tests.support.graph_maker import GraphMaker
from tests.support.random_graph import RandomGraph

BASE = preset("base").replace(vector_depthwise=False, depthwise=True)


def _geometry(kernel: int, stride: int = 1, dilation: int = 1) -> Geometry:
    pad = -(kernel // 2 * dilation)
    return Geometry((kernel, kernel), (pad, pad), (stride, stride), (dilation, dilation))


def random_program(seed: int, params: HardwareParams) -> tuple[IntGraph, GraphMaker, Program]:
    """A graph of some depthwise convolutions, and its program."""
    made = RandomGraph(seed)
    rng = made.rng
    made.pool.append(made.maker.input(int(rng.integers(1, 60)), int(rng.integers(3, 25)), int(rng.integers(3, 40))))
    for _ in range(int(rng.integers(1, 4))):
        made.pool.append(made.depthwise())
        made.pool.append(made.conv() if rng.integers(3) == 0 else made.depthwise())
    graph = made.maker.graph(made.pool[-1])
    return graph, made.maker, fitting_program(graph, params, keep=False)


def depthwise_instructions(program: Program) -> int:
    """How many instructions have kernel taps on the rows of the array."""
    return sum(i.kind is Kind.CONV and i["mode"] >= ConvMode.DEPTHWISE for i in program.instructions)


def check_random(seed: int) -> int:
    """Compile some depthwise convolutions and compare; gives the number of depthwise instructions."""
    rng = np.random.default_rng(seed)
    params = PRESETS[str(rng.choice(["nano", "small", "base"]))].replace(depthwise=True, vector_depthwise=False)
    if rng.integers(3) == 0:
        params = params.replace(scratch_kib=8, weight_kib=16)
    graph, maker, program = random_program(seed, params)
    assert_equal_to_golden(graph, maker, program)
    return depthwise_instructions(program)


def test_random_depthwise_convolutions() -> None:
    first = int(os.environ["INTLOOM_SEED"]) % 1_000_000
    assert sum(check_random(first + k) for k in range(30)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", ["nano", "base"])
def test_random_depthwise_convolutions_on_the_rtl(name: str, count: int) -> None:
    first = int(os.environ["INTLOOM_SEED"]) % 1_000_000
    params = PRESETS[name].replace(depthwise=True, vector_depthwise=False)
    made = (random_program(seed, params) for seed in range(first, first + 100))
    # A third of the programs on nano have such an instruction.
    chosen = list(islice((m for m in made if depthwise_instructions(m[2])), count))
    assert len(chosen) == count
    for graph, maker, program in chosen:
        inputs = maker.random_inputs()
        expected = run_graph(graph, inputs, match=program.params.match)
        outputs = RtlBackend().run(program, inputs).outputs
        for tensor, array in expected.items():
            np.testing.assert_array_equal(outputs[tensor], array, err_msg=f"{graph.name}: tensor {tensor}")


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "most"),
    [(3, 1, 1, 2.25), (3, 1, 2, 3.9), (3, 2, 1, 5.2), (5, 1, 1, 6.5), (5, 2, 1, 11.1), (7, 1, 1, 10)],
)
@pytest.mark.parametrize("size", [14, 28, 56, 112])
def test_cycles_per_output_word(kernel: int, stride: int, dilation: int, most: float, size: int) -> None:
    cut = depthwise_cut(_geometry(kernel, stride, dilation), (size, size), BASE)
    assert cut is not None
    assert cut.cycles(size, size) <= most * size * size


@pytest.mark.parametrize("size", [7, 10, 33])
def test_a_3x3_word_takes_at_most_3_cycles_in_small_images(size: int) -> None:
    cut = depthwise_cut(_geometry(3), (size, size), BASE)
    assert cut is not None
    assert cut.cycles(size, size) <= 3 * size * size


@pytest.mark.parametrize("effort", [0, 1])
def test_neighbors_in_a_column_lie_in_different_banks(effort: int) -> None:
    """Otherwise a store waits once in every column that the array reads."""
    made = RandomGraph(0)
    x = made.maker.input(64, 28, 28)
    y = made.maker.conv(made.maker.conv(x, 64, 3, group=64), 64, 3, stride=2, group=64)
    program = compile_graph(made.maker.graph(y), BASE, effort=effort)
    assert all(i["in_row"] % 2 for i in program.instructions if i.kind is Kind.CONV)


def test_tiles_from_memory_have_more_than_one_block() -> None:
    """An instruction of one block waits for the constants of the one before the last."""
    made = RandomGraph(0)
    x = made.maker.input(576, 14, 14)
    program = compile_graph(made.maker.graph(made.maker.conv(x, 576, 3, group=576)), BASE)
    assert min(i["out_blocks"] for i in program.instructions if i.kind is Kind.CONV) > 1


def test_hardware_without_the_mode_uses_diagonal_tiles() -> None:
    made = RandomGraph(0)
    x = made.maker.input(16, 12, 12)
    y = made.maker.conv(x, 16, 3, pads=(1, 1, 1, 1), group=16)
    graph = made.maker.graph(y)
    modes = {
        on: {i["mode"] for i in compile_graph(graph, BASE.replace(depthwise=on)).instructions if i.kind is Kind.CONV}
        for on in (False, True)
    }
    assert modes == {False: {ConvMode.BLOCKS}, True: {ConvMode.DEPTHWISE}}


def test_a_pointwise_kernel_gains_nothing() -> None:
    assert depthwise_cut(_geometry(1), (20, 20), BASE) is None


@pytest.mark.parametrize(("kernel", "mode"), [(3, ConvMode.DEPTHWISE), (5, ConvMode.DEPTHWISE_ROWS)])
def test_every_weight_is_in_the_row_of_its_tap(kernel: int, mode: ConvMode) -> None:
    cut = depthwise_cut(_geometry(kernel), (30, 30), BASE)
    assert cut is not None and cut.mode is mode
    weights = np.arange(1, 20 * kernel * kernel + 1, dtype=np.int16).reshape(20, 1, kernel, kernel)
    tiles = cut.weight_tiles(weights, [0, 1])
    assert tiles.shape == (2, 1 if mode is ConvMode.DEPTHWISE else kernel, 16, 16)
    assert sorted(tiles[tiles != 0]) == sorted(weights.reshape(-1))
    rows = cut.column_rows
    # The last tap is the newest word; a column further to the left is a column's words older.
    assert tiles[0, -1, 3, 0] == weights[3, 0, -1, -1]
    assert tiles[1, -1, 2, rows] == weights[18, 0, -1, -2]


def test_parts_cover_a_tile_once() -> None:
    cut = depthwise_cut(_geometry(3), (56, 56), BASE)
    assert cut is not None
    seen = np.zeros((11, 70), int)
    for part in cut.parts(Rect(2, 11, 5, 70)):
        assert part.area <= BASE.strip
        seen[part.y0 : part.y1, part.x0 : part.x1] += 1
    assert (seen[2:, 5:] == 1).all() and seen.sum() == 9 * 65
