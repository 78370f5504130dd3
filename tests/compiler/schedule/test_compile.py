"""Whole graphs, compiled, proved sound and executed: equal to golden byte for byte."""

import os
import zlib
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from intloom.common.errors import CapacityError, UnsupportedError
from intloom.compiler.ir import Conv, Custom, IntGraph, Tensor
from intloom.compiler.program.file import to_bytes
from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.program import Layout, Program, Role
from intloom.compiler.program.soundness import check_program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec import timing
from intloom.hw.spec.isa import ConvMode, Kind, TableUse
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.golden import run_graph
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.regress.graphs import GraphMaker
from tests.support.golden import assert_golden
from tests.support.random_graph import random_graph, random_params, with_options
from tests.support.yolo_graph import yolo_graph


def compiled(graph: IntGraph, params: HardwareParams, **options: bool) -> Program:
    program = compile_graph(graph, params, **options)
    check_program(program)
    check_moves(program)
    return program


def check_moves(program: Program) -> None:
    """No instruction moves a word twice, each word of the constants is loaded, with its CRC if hardware checks it."""
    params, first = program.params, program.image_at
    image = program.image + bytes(-len(program.image) % params.word_bytes)
    constants = np.frombuffer(image, np.uint8).reshape(-1, params.word_bytes)
    loaded = np.zeros(len(constants), bool)
    for index, instruction in enumerate(program.instructions):
        for access in footprint(instruction, params) if instruction.kind in (Kind.LOAD, Kind.STORE) else ():
            words = addresses(access)
            assert len(np.unique(words)) == words.size, index
            if access.memory is Memory.DRAM and not access.write:
                of_image = words[(words >= first) & (words < first + len(constants))] - first
                loaded[of_image] = True
                checked = params.constant_check and of_image.size == words.size
                assert instruction["crc"] == (zlib.crc32(constants[of_image].tobytes()) if checked else 0), index
    assert loaded.all()


def assert_equal_to_golden(graph: IntGraph, maker: GraphMaker, program: Program) -> None:
    assert_golden(graph, program, maker.random_inputs())


def check(maker: GraphMaker, output: str, params: HardwareParams) -> Program:
    graph = maker.graph(output)
    program = compiled(graph, params)
    assert_equal_to_golden(graph, maker, program)
    return program


PRESETS = ("nano", "small", "base", "large")


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("kernel", [1, 2, 15])
def test_zero_points_of_weights(name, kernel):
    """Any zero point in each channel, also in a packed image and in groups, costs no time but that of its words."""
    params = preset(name)
    cycles = []
    for nine_bits in (False, True):
        maker = GraphMaker(kernel)
        x = maker.conv(maker.input(3, 20, 16), 2 * params.cols, kernel, nine_bits=nine_bits)
        program = check(maker, maker.conv(x, 2 * params.cols, 3, group=2, nine_bits=nine_bits), params)
        convs = [i for i in program.instructions if i.kind is Kind.CONV]
        assert all(i["weight_zero_points"] == nine_bits for i in convs)
        cycles.append(program.predicted_cycles)
    blocks = sum(i["out_blocks"] for i in convs)
    assert cycles[0] <= cycles[1] <= cycles[0] + blocks * 2 * (params.zero_point_words + timing.ZERO_POINTS)


def test_image_of_three_channels_is_read_packed():
    maker = GraphMaker(1)
    program = check(maker, maker.conv(maker.input(3, 33, 31), 16, 3, stride=2), preset("base"))
    assert program.tensor("in0").layout is Layout.PIXELS4
    conv = next(i for i in program.instructions if i.kind is Kind.CONV)
    assert (conv["mode"], conv["kernel_w"]) == (ConvMode.PACKED, 1)


def test_residual_addition_costs_no_vector_instruction():
    maker = GraphMaker(2)
    x = maker.input(32, 9, 9)
    program = check(maker, maker.add(x, maker.conv(x, 32, 3)), preset("base"))
    kinds = {i.kind for i in program.instructions}
    assert Kind.VADD not in kinds
    assert any(i["residual"] for i in program.instructions if i.kind is Kind.CONV)


def test_an_array_table_is_loaded_once_for_all_tiles():
    maker = GraphMaker(8)
    x = maker.conv(maker.input(32, 40, 40), 32, 1, table=True)
    program = check(maker, maker.conv(x, 32, 1, table=True), preset("base").replace(scratch_kib=16))
    uses = [i["table"] for i in program.instructions if i.kind is Kind.CONV]
    assert uses.count(TableUse.LOAD) == 2
    assert uses.count(TableUse.KEEP) > 8


def test_a_fully_connected_layer_goes_at_the_pace_of_its_weights():
    maker = GraphMaker(9)
    program = compiled(maker.graph(maker.conv(maker.input(1280, 1, 1), 1000, 1)), preset("base"))
    words = sum(layer.dram_words for layer in program.layers)
    assert words > 80_000
    # The first block's weights come before anything can start.
    assert words < program.predicted_cycles < words + 2 * words / 63


def test_concatenation_of_whole_words_costs_no_copy():
    maker = GraphMaker(3)
    x = maker.input(16, 9, 9)
    y = maker.conv(x, 32)
    parts = [maker.slice(y, 0, 16), maker.slice(y, 16, 32)]
    program = check(maker, maker.concat(*parts, maker.conv(parts[1], 16, 3)), preset("base"))
    assert not any(i.unit.name == "VEC" for i in program.instructions)


@pytest.mark.parametrize("name", PRESETS)
def test_every_operation(name):
    maker = GraphMaker(4)
    m, x = maker, maker.input(24, 12, 12)
    a = m.conv(x, 24, 3, group=24)
    b = m.conv(m.max_pool(a, 3, pad=1), 24, 3, group=3, nine_bits=True)
    c = m.mul(m.add(a, b, table=True), m.conv(m.avg_pool(b, 12), 24))
    d = m.transposed(m.max_pool(c, 2, 2), 10, 4, 2, pad=1)
    e = m.resize(m.apply_table(m.avg_pool(d, 3, 2, 1, table=True)))
    check(maker, m.slice(m.concat(e, c, m.slice(b, 5, 17)), 3, 40), preset(name))


@pytest.mark.parametrize("tables", [False, True])
def test_yolo_topology_at_96(tables):
    graph, maker = yolo_graph(96, tables=tables)
    assert_equal_to_golden(graph, maker, compiled(graph, preset("base")))


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_yolo_topology_on_every_preset(name):
    graph, maker = yolo_graph(64)
    assert_equal_to_golden(graph, maker, compiled(graph, preset(name)))


@pytest.mark.slow
@pytest.mark.parametrize("kib", [32, 128, 1024])
def test_yolo_topology_in_every_scratchpad(kib):
    graph, maker = yolo_graph(128)
    assert_equal_to_golden(graph, maker, compiled(graph, preset("base").replace(scratch_kib=kib)))


def test_array_use_traffic_and_size_for_yolo_at_640():
    graph, _ = yolo_graph(640)
    program = compiled(graph, preset("base"))
    macs = sum(layer.macs for layer in program.layers)
    assert macs == 4_371_456_000
    assert macs / (256 * program.predicted_cycles) > 0.96
    words = sum(-(-t.channels // 16) * t.height * t.width for t in graph.tensors.values())
    assert sum(layer.dram_words for layer in program.layers) < 1.25 * (2 * words + len(program.image) // 16)


def fitting_program(graph: IntGraph, params: HardwareParams, keep: bool) -> Program:
    """Compile, and follow the advice of each error."""
    for _ in range(8):
        try:
            return compiled(graph, params, keep_intermediates=keep)
        except CapacityError as error:
            advice = str(error).rpartition("use ")[2]
            name, _, value = advice.partition(" = ")
            assert name in ("scratch_kib", "weight_kib"), advice
            assert int(value) > params.to_dict()[name]
            params = params.replace(**{name: int(value)})
    raise AssertionError(f"advice for {graph.name} does not end")


def check_random(seed: int, *, options: bool = True) -> None:
    params = with_options(random_params(seed), seed) if options else random_params(seed)
    graph, maker = random_graph(seed, params=params)
    if params.word_code:
        # Random weights of all bits are not coded.
        short = (
            replace(n, weights=n.weights >> k % 7) if isinstance(n, Conv) else n for k, n in enumerate(graph.nodes)
        )
        graph = replace(graph, nodes=tuple(short))
    program = fitting_program(graph, params, keep=seed % 4 == 0)
    assert_equal_to_golden(graph, maker, program)


@pytest.mark.parametrize("index", range(40))
def test_random_graph(index):
    check_random(int(os.environ["INTLOOM_SEED"]) % 1_000_000 + index)


@pytest.mark.parametrize("seed", [1108, 1389])
def test_tiles_at_the_edge_may_need_more_than_those_in_the_middle(seed):
    check_random(seed, options=False)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(608598, id="tile of a moved vector task must not overlap a buffer of an earlier slot"),
        pytest.param(608494, id="result that starts early in a buffer that the stage before writes"),
        pytest.param(100086, id="result that starts early in a buffer that the stage before reads"),
        pytest.param(608654, id="copy into blocks that no stage reads"),
        pytest.param(300246, id="copy that only the second chunk makes"),
    ],
)
def test_graphs_that_found_faults_of_the_schedule(seed):
    check_random(seed, options=False)


@pytest.mark.slow
@pytest.mark.parametrize("count", [100, pytest.param(300, marks=pytest.mark.nightly)])
def test_many_random_graphs(count):
    first = int(os.environ["INTLOOM_SEED"]) % 1_000_000 + 1000
    for seed in range(first, first + count):
        check_random(seed)


def test_kept_intermediates_are_right_when_their_first_instruction_has_ended():
    graph, maker = yolo_graph(64)
    program = compiled(graph, preset("base"), keep_intermediates=True)
    inputs = maker.random_inputs()
    expected = run_graph(graph, inputs, match=program.params.match, keep=True)
    simulator = IsaSimulator(program)
    simulator.reset(inputs)
    due = {p.first_instruction: p.name for p in program.tensors if p.role is not Role.INPUT}
    assert {p.name for p in program.tensors} == set(graph.tensors)
    while not simulator.finished:
        index = simulator.step()
        if index in due:
            np.testing.assert_array_equal(simulator.tensor(due[index]), expected[due[index]])
    for name, array in expected.items():
        np.testing.assert_array_equal(simulator.tensor(name), array, err_msg=name)


def test_a_layer_that_leads_to_no_output_has_no_products():
    maker = GraphMaker(3)
    x = maker.input(16, 8, 8)
    maker.conv(x, 16, 3)
    program = check(maker, maker.conv(x, 16, 1), preset("base"))
    assert [layer.macs > 0 for layer in program.layers] == [False, True]


def test_equal_graphs_give_equal_bytes():
    first, second = (to_bytes(compile_graph(yolo_graph(64)[0], preset("base"))) for _ in range(2))
    assert first == second


def test_progress_is_told():
    maker = GraphMaker(5)
    seen = []
    graph = maker.graph(maker.conv(maker.input(16, 64, 64), 32, 3))
    compile_graph(graph, preset("base"), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] == len(seen)


def test_too_small_a_scratchpad_is_refused_with_the_smallest_that_would_do():
    maker = GraphMaker(6)
    graph = maker.graph(maker.conv(maker.input(512, 20, 20), 16, 5))
    small = preset("base").replace(scratch_kib=8)
    with pytest.raises(CapacityError, match=r"'conv0'.*scratch_kib = 8 .*use scratch_kib = 16$"):
        compile_graph(graph, small.replace(weight_kib=1024))
    check(maker, graph.outputs[0], small.replace(weight_kib=1024, scratch_kib=16))


@pytest.mark.parametrize("nine_bits", [False, True])
@pytest.mark.parametrize("shape", [(4000, 1, 1, 1), (515, 9, 20, 3)])
@pytest.mark.parametrize(("name", "kib"), [("nano", 8), ("base", 16)])
def test_weights_that_exceed_their_memory_come_in_pieces(name, kib, shape, nine_bits):
    """Every CONV but the first one of an output block continues the sums, of a strip at most."""
    params = preset(name).replace(weight_kib=kib, scratch_kib=64)
    channels, height, width, kernel = shape
    maker = GraphMaker(7)
    x = maker.input(channels, height, width)
    first = maker.conv(x, 70, kernel, nine_bits=nine_bits)
    # A residual addition, a copy of the result, and a reader of it in the scratchpad.
    program = check(maker, maker.concat(maker.add(first, maker.input(70, height, width)), maker.conv(first, 8)), params)
    convs = [i for i in program.instructions if i.kind is Kind.CONV]
    assert sum(i["continue_sums"] for i in convs) >= len(convs) // 2
    for before, conv in pairwise(convs):
        if conv["continue_sums"]:
            assert before["out_h"] * before["out_w"] == conv["out_h"] * conv["out_w"] <= params.strip


def test_too_small_a_weight_memory_is_refused_with_the_smallest_that_would_do():
    """A piece has all taps of one input block."""
    maker = GraphMaker(7)
    graph = maker.graph(maker.conv(maker.input(64, 15, 15), 16, 15))
    with pytest.raises(CapacityError, match=r"'conv0'.*use weight_kib = 64$"):
        compile_graph(graph, preset("base").replace(weight_kib=32))
    check(maker, graph.outputs[0], preset("base").replace(weight_kib=64))


def test_advice_holds_for_the_whole_graph():
    """The node that needs most is named, whatever its position, so that following the advice once is enough."""
    maker = GraphMaker(12)
    x = maker.conv(maker.input(256, 4, 4), 64, 9)
    graph = maker.graph(maker.conv(maker.conv(x, 16, 13), 16, 1))
    params = preset("base").replace(weight_kib=16)
    with pytest.raises(CapacityError, match=r"'conv1'.*use weight_kib = 64"):
        compile_graph(graph, params)
    compiled(graph, params.replace(weight_kib=64))
    tall = GraphMaker(13)
    graph = tall.graph(tall.conv(tall.conv(tall.input(256, 20, 20), 512, 5), 16, 5))
    small = preset("base").replace(weight_kib=1024, scratch_kib=4)
    with pytest.raises(CapacityError, match=r"'conv1'.*use scratch_kib = 16$"):
        compile_graph(graph, small)
    compiled(graph, small.replace(scratch_kib=16))


def test_custom_operations_and_missing_units_are_refused_by_name():
    maker = GraphMaker(8)
    x = maker.input(4, 4, 4)
    custom = Custom(name="mine", inputs=(x,), output="y", domain="me", op="Mine")
    tensors = {**maker.tensors, "y": Tensor("y", (1, 4, 4, 4), 0.1, 0, True)}
    with pytest.raises(UnsupportedError, match="'mine'"):
        compile_graph(IntGraph("g", tensors, (custom,), (x,), ("y",)), preset("base"))
    product = maker.graph(maker.mul(x, x))
    with pytest.raises(UnsupportedError, match=r"'mul0'.*vector_multiply"):
        compile_graph(product, preset("base").replace(vector_multiply=False))


def test_strides_and_kernels_out_of_range_are_refused_by_name():
    for kernel, stride, field in ((1, 5, "stride_h"), (17, 1, "kernel_h")):
        maker = GraphMaker(9)
        graph = maker.graph(maker.conv(maker.input(16, 40, 40), 16, kernel, stride=stride))
        with pytest.raises(UnsupportedError, match=rf"'conv0'.*{field}"):
            compile_graph(graph, preset("base"))


def test_what_no_memory_could_hold_is_refused_without_false_advice():
    maker = GraphMaker(10)
    graph = maker.graph(maker.conv(maker.input(4096, 5, 5), 32, 15, pads=(7, 7, 7, 7), group=2))
    with pytest.raises(CapacityError, match="no weight_kib up to 1024 would do"):
        compile_graph(graph, preset("base"))


@pytest.mark.parametrize("kernel", [(32, 32), (31, 33), (8, 128), (33, 32), (25, 41)])
def test_a_window_has_as_many_pixels_as_its_sum_has_bits_for(kernel):
    maker = GraphMaker(9)
    graph = maker.graph(maker.avg_pool(maker.input(4, 40, 130), kernel, 15))
    if kernel[0] * kernel[1] <= 1024:
        compiled(graph, preset("nano"))
    else:
        with pytest.raises(UnsupportedError, match="the window may have 1024 pixels"):
            compile_graph(graph, preset("nano"))
