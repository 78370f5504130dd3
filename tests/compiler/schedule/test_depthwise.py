"""Depthwise convolutions on the vector unit: results, constants, rings, choice of the unit, and dispatch order."""

import os

import pytest

from intloom.compiler.program.program import Program
from intloom.compiler.schedule.plan.groups import GroupCosts
from intloom.compiler.schedule.stages import conv
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.regress.graphs import GraphMaker
from tests.compiler.schedule.test_compile import assert_equal_to_golden, check, compiled, fitting_program
from tests.support.random_graph import RandomGraph

BASE = preset("base")
HARDWARE = {
    "nano": preset("nano").replace(vector_depthwise=True),
    "small": preset("small").replace(vector_depthwise=True, vector_lanes=2),
    "base": BASE,
    "large": preset("large"),
}


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every depthwise convolution that the vector unit can compute runs there."""
    monkeypatch.setattr(conv, "pays_on_vector_unit", lambda node, stages: True)


def made_by(program: Program) -> set[Kind]:
    return {i.kind for i in program.instructions} & {Kind.CONV, Kind.VDEPTHWISE, Kind.VADD}


def random_program(seed: int, params: HardwareParams) -> tuple[RandomGraph, Program]:
    """Depthwise convolutions among others, with tables, residual additions and copies."""
    made = RandomGraph(seed)
    rng = made.rng
    made.pool.append(made.maker.input(int(rng.integers(2, 60)), int(rng.integers(3, 25)), int(rng.integers(3, 40))))
    growing = (made.depthwise, made.depthwise, made.depthwise, made.conv, made.residual, made.table, made.resize)
    for _ in range(int(rng.integers(1, 5))):
        made.pool.append(growing[int(rng.integers(len(growing)))]())
    made.pool.append(made.depthwise())
    return made, fitting_program(made.maker.graph(made.pool[-1]), params, keep=bool(rng.integers(8) == 0))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("name", HARDWARE)
def test_random_depthwise_convolutions(name: str) -> None:
    first = int(os.environ["INTLOOM_SEED"]) % 1_000_000
    found = 0
    for seed in range(first, first + 12):
        params = HARDWARE[name].replace(scratch_kib=8, weight_kib=16) if seed % 3 == 0 else HARDWARE[name]
        params = params if params.weight_kib > 16 or name != "large" else HARDWARE[name]
        made, program = random_program(seed, params)
        assert_equal_to_golden(made.maker.graph(made.pool[-1]), made.maker, program)
        found += sum(i.kind is Kind.VDEPTHWISE for i in program.instructions)
    assert found


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kernel", [(1, 1), (2, 1), (3, 2), (3, 3), (5, 5), (15, 4)])
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_kernels_and_strides(kernel: tuple[int, int], stride: int) -> None:
    maker = GraphMaker(stride)
    x = maker.input(21, 19, 23)
    program = check(maker, maker.conv(x, 21, kernel, stride=stride, group=21), BASE)
    assert made_by(program) == {Kind.VDEPTHWISE}


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    ("channels", "kernel", "fields"),
    [(16, (3, 6), {}), (16, 3, {"dilation": (2, 1)}), (16, 3, {"nine_bits": True}), (32, 3, {})],
)
def test_what_the_vector_unit_cannot_compute_stays_on_the_array(channels: int, kernel: int, fields: dict) -> None:
    maker = GraphMaker(1)
    program = check(maker, maker.conv(maker.input(16, 12, 12), channels, kernel, group=16, **fields), BASE)
    assert made_by(program) == {Kind.CONV}


def inverted_residual(maker: GraphMaker, x: str, wide: int, stride: int) -> str:
    channels = maker.shape(x)[0]
    y = maker.conv(maker.conv(x, wide, 1, table=False), wide, 3, stride=stride, group=wide)
    y = maker.conv(y, channels, 1, table=False)
    return maker.add(x, y) if stride == 1 else y


@pytest.mark.parametrize("stride", [1, 2])
def test_stripes_read_and_write_rings(stride: int) -> None:
    maker = GraphMaker(5)
    program = check(maker, inverted_residual(maker, maker.input(16, 56, 56), 96, stride), BASE)
    found = [i for i in program.instructions if i.kind is Kind.VDEPTHWISE]
    assert sum(i["out_h"] * i["out_w"] for i in found) == 56 * 56 * 6 // stride**2
    # Some instruction wraps its input, whose rows lie an odd number of words apart.
    assert any(i["a_ring"] and i["a_row_off"] + i["kernel_h"] * i["a_row"] > i["a_ring"] for i in found)
    assert all(i["a_row"] % 2 for i in found)
    assert words_moved(program) < 56 * 56 * (1 + 1 / stride**2) + len(program.image) // 16 + 100


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "width"), [(5, 1, 80), (5, 1, 163), (3, 2, 131)])
def test_rows_too_long_for_the_scratchpad_are_cut_into_parts(
    kernel: int, stride: int, width: int, residual: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = GraphMaker(8)
    # With the input so large that it does not stay between the groups either.
    x = maker.conv(maker.input(64, 9, width), 128, 1)
    y = maker.conv(maker.conv(x, 128, kernel, stride=stride, group=128), 96, 1, table=not residual)
    result = maker.add(maker.conv(x, 96, 1, stride=stride), y) if residual else y
    small = BASE.replace(scratch_kib=64)
    program = check(maker, result, small)
    widths = {i["out_w"] for i in program.instructions if i.kind is Kind.VDEPTHWISE}
    columns = -(-width // stride)
    assert max(widths) <= -(-columns // 2)
    assert {i["ix0"] for i in program.instructions if i.kind is Kind.VDEPTHWISE} > {-(kernel // 2)}
    monkeypatch.setattr(GroupCosts, "in_parts", lambda *_: None)
    whole = compiled(maker.graph(result), small)
    assert program.predicted_cycles < whole.predicted_cycles
    assert words_moved(program) < words_moved(whole)


def words_moved(program: Program) -> int:
    return sum(layer.dram_words for layer in program.layers)


@pytest.mark.parametrize(("size", "channels", "wide"), [(56, 24, 144), (28, 32, 192), (14, 64, 384), (7, 160, 960)])
def test_array_and_vector_unit_work_at_the_same_time(size: int, channels: int, wide: int) -> None:
    maker = GraphMaker(6)
    graph = maker.graph(inverted_residual(maker, maker.input(channels, size, size), wide, 1))
    both_units, array_only = (
        compiled(graph, BASE.replace(vector_depthwise=on)).predicted_cycles for on in (True, False)
    )
    assert both_units < 0.9 * array_only


def test_separable_layers_of_a_keyword_spotter_hide_their_depthwise_convolutions() -> None:
    """Stage by stage: steps of few rows would leave strips short, and the array waits for the first weights."""
    maker = GraphMaker(6)
    x = maker.input(256, 13, 5)
    for _ in range(3):
        x = maker.conv(maker.conv(x, 256, 3, group=256), 256)
    program = check(maker, x, BASE)
    assert made_by(program) == {Kind.CONV, Kind.VDEPTHWISE}
    assert program.predicted_cycles < 1.2 * 3 * 16 * 16 * 65


@pytest.mark.parametrize(("kernel", "unit"), [(1, Kind.CONV), (2, Kind.CONV), (3, Kind.VDEPTHWISE)])
def test_a_layer_without_neighbors_runs_on_the_faster_unit(kernel: int, unit: Kind) -> None:
    """The array takes a cycle of an output word for each tap."""
    maker = GraphMaker(7)
    program = check(maker, maker.conv(maker.input(64, 28, 28), 64, kernel, group=64), BASE)
    assert made_by(program) == {unit}


def test_a_sum_is_not_fused_into_a_depthwise_convolution() -> None:
    maker = GraphMaker(8)
    x = maker.conv(maker.input(64, 28, 28), 64, 1, table=False)
    program = check(maker, maker.add(x, maker.conv(x, 64, 3, group=64, table=False)), BASE)
    assert made_by(program) == {Kind.CONV, Kind.VDEPTHWISE, Kind.VADD}


def test_a_full_queue_of_one_unit_does_not_delay_the_others() -> None:
    """Between two tiles of the array are more VDEPTHWISE than a queue holds, so they are mixed."""
    maker = GraphMaker(9)
    program = check(maker, inverted_residual(maker, maker.input(64, 14, 14), 384, 1), BASE)
    deep = compiled(maker.graph(maker.nodes[-1].output), BASE.replace(queue_depth=64))
    assert program.predicted_cycles < 1.03 * deep.predicted_cycles


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("on_vector", [True, False])
def test_products_of_the_vector_unit_are_counted_apart(on_vector: bool) -> None:
    maker = GraphMaker(3)
    wide = maker.conv(maker.input(16, 24, 24), 32, 1)
    graph = maker.graph(maker.conv(maker.conv(wide, 32, 3, group=32), 16, 1))
    program = compiled(graph, BASE.replace(vector_depthwise=on_vector))
    depthwise, pointwise = 9 * 32 * 24 * 24, 16 * 32 * 24 * 24
    counts = [(layer.macs, layer.vector_macs) for layer in program.layers]
    assert counts == [(pointwise, 0), (0, depthwise) if on_vector else (depthwise, 0), (pointwise, 0)]
    assert (program.macs, program.vector_macs) == tuple(map(sum, zip(*counts, strict=True)))
