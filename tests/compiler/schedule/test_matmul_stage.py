"""Products of two tensors: the program equals the golden model for random sizes, zero points and hardware."""

import random

import numpy as np
import pytest

from intloom.common.errors import CapacityError, UnsupportedError
from intloom.compiler.ir import MatMul, Tensor
from intloom.compiler.schedule import compile_graph
from intloom.compiler.schedule.passes.blank_lanes import fill_blank_lanes
from intloom.hw.spec.arith import RoundingMode, scale_from_float
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import changed, preset
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker, matmul, transposed_constant
from tests.support.golden import golden_program


@pytest.mark.parametrize("name", ["nano", "small", "base"])
@pytest.mark.parametrize("effort", [0, 1])
def test_random_sizes(name: str, effort: int, rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    size = (rng.choice([16, 32, 64]), rng.randint(1, 20), rng.randint(1, 12))
    graph, inputs = maker.finish(matmul(maker, maker.input(*size), columns=rng.randint(1, 90)))
    golden_program(graph, inputs, preset(name).replace(weight_sums=True), effort)


def _with_zero_points(maker: GraphMaker, zero_point: int) -> str:
    """A product whose moving operand has this zero point."""
    name = matmul(maker, maker.input(8, 5, 3), columns=9)
    node = maker.nodes[-1]
    assert isinstance(node, MatMul)
    maker.nodes[-1] = MatMul(**{**node.__dict__, "zp_a": zero_point, "zp_b": -128})
    for operand, value in zip(node.inputs, (zero_point, -128), strict=True):
        maker.tensors[operand] = Tensor(operand, maker.tensors[operand].shape, 0.05, value, False)
    return name


@pytest.mark.parametrize("zero_point", [0, 1, 127, -128])
def test_zero_points(zero_point: int, rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    graph, inputs = maker.finish(_with_zero_points(maker, zero_point))
    program = golden_program(graph, inputs, preset("nano"))
    convs = [i for i in program.instructions if i.kind is Kind.CONV]
    assert {i["subtract_zp_in"] for i in convs} == {int(zero_point != 0)}
    assert {i["kernel_h"] for i in convs} == {1}


@pytest.mark.parametrize("zero_point", [0, 1])
def test_hardware_without_sums_of_weights(zero_point: int, rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    name = _with_zero_points(maker, zero_point)
    graph, inputs = maker.finish(name)
    params = preset("nano").replace(weight_sums=False)
    if zero_point == 0:
        golden_program(graph, inputs, params)
        return
    with pytest.raises(UnsupportedError, match=r"moving operand has the zero point 1; set weight_sums = true"):
        compile_graph(graph, params)


@pytest.mark.parametrize("channels", [3, 6, 17])
def test_channels_and_pixels_exchanged(channels: int, rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    graph, inputs = maker.finish(
        transposed_constant(maker, maker.input(channels, rng.randint(1, 6), rng.randint(1, 6)))
    )
    golden_program(graph, inputs, preset("small"))
    (x,) = inputs.values()
    (y,) = run_graph(graph, inputs, match=RoundingMode.ORT).values()
    np.testing.assert_array_equal(y.reshape(-1, channels).T, x.reshape(channels, -1))


def test_a_product_of_a_result_waits_for_its_store(rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    x = maker.input(8, 4, 4)
    a, b = (maker.conv(x, 16, 3) for _ in range(2))
    one = scale_from_float(2**-10)
    zeros = {"zp_a": maker.tensors[a].zero_point, "zp_b": maker.tensors[b].zero_point, "zp_out": 0}
    y = maker.node(MatMul, (a, b), (16, 4, 4), mantissa=one.mantissa, shift=one.shift, **zeros)
    # Also as an ordinary operand of a later stage, in the scratchpad.
    graph, inputs = maker.finish(maker.conv(y, 5))
    for effort in (0, 1, 2):
        golden_program(graph, inputs, preset("base"), effort)


@pytest.mark.parametrize("effort", [0, 1])
@pytest.mark.parametrize(("channels", "copies"), [(8, 0), (6, 1)])
def test_sums_over_parts_of_words_read_a_copy_by_the_array(
    channels: int, copies: int, effort: int, rng: random.Random
) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    graph, inputs = maker.finish(matmul(maker, maker.input(channels, 4, 4), columns=5))
    program = golden_program(graph, inputs, preset("nano"), effort)
    layers = {program.layers[p.layer].op for i, p in zip(program.instructions, program.provenance, strict=True)}
    assert layers == {"MatMul"}
    assert len(fill_blank_lanes(graph, preset("nano")).nodes) == len(graph.nodes) + copies


@pytest.mark.parametrize("side", [(4, 6), (12, 24)])
def test_a_copy_that_fills_lanes_for_a_product_reads_no_pairs_of_pixels(
    side: tuple[int, int], rng: random.Random
) -> None:
    """A transposed convolution, which would read them, has no such lanes."""
    maker = GraphMaker(rng.getrandbits(32))
    moving = maker.conv(maker.input(8, *side), 4)
    zero, one = maker.tensors[moving].zero_point, scale_from_float(2**-8)
    stationary = maker.max_pool(maker.conv(maker.input(8, 3, 3), 4), 1)
    zeros = {"zp_a": zero, "zp_b": maker.tensors[stationary].zero_point, "zp_out": 0}
    y = maker.node(MatMul, (moving, stationary), (9, *side), mantissa=one.mantissa, shift=one.shift, **zeros)
    graph, inputs = maker.finish(y)
    golden_program(graph, inputs, preset("small").replace(weight_sums=True))


def test_sums_over_parts_of_words_are_refused_without_columns_for_a_word(rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    graph, _ = maker.finish(matmul(maker, maker.input(6, 4, 4), columns=5))
    tall = preset("nano").replace(rows=8, cols=4, lanes=2, axi_data_bits=64)
    said = "over 6 channels, which do not fill words of 8, .* use cols = 8, or rows = 4"
    with pytest.raises(UnsupportedError, match=said):
        compile_graph(graph, tall)
    for remedy in ({"cols": 8}, {"rows": 4}):
        compile_graph(graph, changed(tall, remedy))


def test_a_product_whose_weights_do_not_fit_is_refused_with_a_size_that_does(rng: random.Random) -> None:
    """Only constants can be cut along input channels."""
    maker, tight = GraphMaker(rng.getrandbits(32)), preset("nano").replace(weight_kib=2)
    graph, inputs = maker.finish(matmul(maker, maker.input(512, 2, 4), columns=8))
    with pytest.raises(CapacityError, match="use weight_kib = 4"):
        compile_graph(graph, tight)
    golden_program(graph, inputs, tight.replace(weight_kib=4))
