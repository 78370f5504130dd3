"""Stripes: ring buffers hold exactly the rows that are needed, and intermediates never reach DRAM."""

import numpy as np
import pytest

from intloom.compiler.ir import AvgPool, ConvTranspose, IntGraph, Slice, Softmax
from intloom.compiler.program.cost import conv_busy, instruction_cost
from intloom.compiler.program.program import Program
from intloom.compiler.schedule import compile_graph
from intloom.compiler.schedule.plan.dataflow import Dataflow, on_both_units
from intloom.compiler.schedule.plan.stripes import RowProgress, Stripes
from intloom.compiler.schedule.stages import build_stages
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.formats import move_words
from intloom.hw.spec.isa import Kind, LoadTarget
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker
from tests.support.golden import assert_golden, golden_program

BASE = preset("base")
SMALL_SCRATCHPAD = BASE.replace(scratch_kib=16)


def moved(program: Program) -> tuple[int, int, int]:
    """Words of weights, of other loads, and of stores."""
    weights = inputs = stores = 0
    for instruction in program.instructions:
        if instruction.kind is Kind.STORE:
            stores += move_words(instruction)
        elif instruction.kind is Kind.LOAD and instruction["target"] == LoadTarget.WEIGHT:
            weights += move_words(instruction)
        elif instruction.kind is Kind.LOAD:
            inputs += move_words(instruction)
    return weights, inputs, stores


def planned(graph: IntGraph, rows: int) -> tuple[Dataflow, Stripes]:
    """All stages of a graph as one group."""
    flow = Dataflow(build_stages(graph, BASE, keep_intermediates=False))
    plan = RowProgress(flow).plan(0, len(flow.stages), rows)
    assert plan is not None
    return flow, plan


def test_a_chain_moves_only_input_weights_and_output():
    maker = GraphMaker(1)
    x = maker.input(16, 64, 40)
    y = maker.conv(maker.conv(maker.conv(x, 16, 3, table=False), 16, 5, table=False), 16, 3, table=False)
    program = golden_program(maker.graph(y), maker.random_inputs(), SMALL_SCRATCHPAD)
    image = len(program.image) // BASE.word_bytes
    assert moved(program) == (image, 64 * 40, 64 * 40)
    # Each tensor has 2,560 words, of which the scratchpad holds 1,024.
    assert all(i["in_ring"] for i in program.instructions if i.kind is Kind.CONV)


def everything(maker: GraphMaker) -> str:
    """A graph with every operation that stripes cross."""
    m = maker
    x = m.conv(m.input(3, 64, 40), 32, 3, stride=2)
    halves = [m.slice(x, 0, 16), m.slice(x, 16, 32)]
    y = m.add(halves[1], m.conv(m.conv(halves[1], 16, 3, group=16), 16, 3))
    z = m.conv(m.concat(m.apply_table(halves[0]), m.apply_table(halves[1]), y), 16)
    z = m.concat(m.resize(m.max_pool(z, 3, 2, 1)), z, m.max_pool(z, 5, pad=2))
    return m.mul(m.conv(z, 16, 3), m.conv(z, 16))


@pytest.mark.parametrize("kib", [8, 16, 32, 128])
def test_stripes_cross_every_operation(kib):
    maker = GraphMaker(2)
    graph = maker.graph(everything(maker))
    params = BASE.replace(scratch_kib=kib)
    program = golden_program(graph, maker.random_inputs(), params)
    apart = compile_graph(graph, params, effort=0)
    assert sum(moved(program)[1:]) < sum(moved(apart)[1:]) * 2 / 3


@pytest.mark.parametrize("height", [64, 66])
def test_stripes_cross_averages_of_blocks_and_a_broadcast_pixel(height):
    """As in squeeze-and-excitation: the wide tensors do not reach memory."""
    maker = GraphMaker(9)
    x = maker.conv(maker.input(16, height, 40), 32, 3)
    gate = maker.input(32, 1, 1)
    rows = -(-height // 4)
    pads = (0, 0, 4 * rows - height, 0)
    fields = {"kernel": (4, 4), "strides": (4, 4), "pads": pads, "affine": Affine(1, 0, 0, 4), "zp_in": -7}
    pooled = maker.node(AvgPool, (x,), (32, rows, 10), **fields)
    scaled = maker.conv(maker.add(maker.mul(x, gate), x), 16, 3)
    program = golden_program(maker.graph(pooled, scaled), maker.random_inputs(), BASE.replace(scratch_kib=32))
    assert moved(program)[1:] == (height * 40 + 2, rows * 10 * 2 + height * 40)


def array_cycles(program: Program) -> int:
    """Cycles in which the array executes."""
    return sum(conv_busy(i, program.params) for i in program.instructions if i.kind is Kind.CONV)


def test_the_array_does_not_wait_for_rows_that_the_vector_unit_enlarges():
    maker = GraphMaker(7)
    x = maker.conv(maker.input(128, 20, 40), 128, 1)
    program = golden_program(maker.graph(maker.conv(maker.resize(x), 64, 1)), maker.random_inputs(), BASE)
    # The two convolutions take 76,800 cycles of the array, the copies 51,200 cycles of the vector unit.
    assert program.predicted_cycles < 1.05 * array_cycles(program)


def test_the_array_does_not_wait_for_rows_that_the_vector_unit_reads():
    maker = GraphMaker(8)
    x = maker.conv(maker.input(64, 40, 40), 64, 3)
    program = golden_program(maker.graph(maker.max_pool(x, 5, pad=2)), maker.random_inputs(), BASE)
    assert program.predicted_cycles < 1.1 * array_cycles(program)


def test_the_vector_unit_does_not_wait_for_rows_of_a_pool_whose_result_it_pools():
    """Only every fourth step has work for the other pools: in those between them the first one runs again at once."""
    maker = GraphMaker(11)
    x = maker.avg_pool(maker.input(96, 160, 160), 4, 4)
    program = compile_graph(maker.graph(maker.max_pool(x, 4, 4), maker.avg_pool(x, 4, 4)), BASE)
    instructions = [i for i in program.instructions if i.kind in (Kind.VMAX, Kind.VAVG)]
    vector = sum(instruction_cost(i, BASE).work for i in instructions)
    assert vector < program.predicted_cycles < 1.1 * vector


def test_a_softmax_does_not_wait_for_the_array_that_reads_it():
    """Its next rows have room in addition to those that a product still reads."""
    params = BASE.replace(scratch_kib=64)
    maker = GraphMaker(9)
    x = maker.conv(maker.input(16, 16, 16), 256)
    x = maker.node(Softmax, (x,), (256, 16, 16), **maker.exponentials(256))
    graph, _ = maker.finish(maker.conv(x, 16))
    program = compile_graph(graph, params)
    vector = sum(instruction_cost(i, params).work for i in program.instructions if i.kind is Kind.VSOFTMAX)
    assert vector < program.predicted_cycles < 1.2 * vector


def test_a_copy_that_shifts_channels_loads_the_words_that_it_reads():
    maker = GraphMaker(10)
    x = maker.input(160, 6, 5)
    graph, _ = maker.finish(maker.node(Slice, (x,), (20, 6, 5), start=40, stop=60))
    program = compile_graph(graph, BASE)
    # Channels 40 to 59 lie in the words of channels 32 to 63.
    assert moved(program) == (0, 2 * 6 * 5, 2 * 6 * 5)


@pytest.mark.parametrize(("low", "stop", "blocks"), [(0, 16, 1), (17, 31, 1), (15, 17, 2), (40, 60, 2), (0, 60, 4)])
def test_a_phase_reads_the_blocks_that_have_weights(low, stop, blocks):
    """Of a transposed convolution, each phase; all other weights are 0."""
    maker = GraphMaker(11)
    x = maker.input(60, 5, 4)
    weights = np.zeros((24, 60, 2, 2), np.int8)
    weights[:, low:stop] = maker.bytes((24, stop - low, 2, 2)) | 1
    values = {"weights": weights, "strides": (2, 2)} | maker.scales(24, 60 * 4)
    graph, inputs = maker.finish(maker.node(ConvTranspose, (x,), (24, 10, 8), **values))
    program = compile_graph(graph, BASE)
    assert {i["in_blocks"] for i in program.instructions if i.kind is Kind.CONV} == {blocks}
    assert_golden(graph, program, inputs)


def test_weights_that_do_not_fit_together_are_loaded_in_every_step():
    maker = GraphMaker(3)
    x = maker.input(16, 512, 16)
    for _ in range(4):
        x = maker.conv(x, 16, 3)
    params = BASE.replace(weight_kib=8)
    program = golden_program(maker.graph(x), maker.random_inputs(), params)
    weights, inputs, stores = moved(program)
    assert weights > len(program.image) // BASE.word_bytes
    assert (inputs, stores) == (512 * 16, 512 * 16)


@pytest.mark.parametrize("rows", [1, 2, 3, 8])
def test_a_ring_holds_every_row_until_its_last_read_and_no_more(rows):
    maker = GraphMaker(4)
    flow, plan = planned(maker.graph(everything(maker)), rows)
    for inside in flow.inside(0, len(flow.stages)).values():
        local = plan.rings[inside.buffer]
        assert all_reads_find_their_rows(plan, inside, local.rows)
        units = {w.factor * w.stage.row_step[0] for w in inside.writes}
        if not local.whole and units <= {1} and not inside.stored:
            assert not all_reads_find_their_rows(plan, inside, local.rows - 1)


def all_reads_find_their_rows(plan, inside, rows):
    """Replay all steps on a ring of `rows` rows: whether each read finds the rows that were written."""
    held = {}
    writers = [(plan.progress[w.index].rows, w.factor, w.blocks) for w in inside.writes]
    arrival = plan.rings[inside.buffer].arrival
    if arrival is not None:
        writers.append((arrival, 1, sorted(inside.loaded)))
    for step in range(plan.steps + 1):
        before = max(step - 1, 0)
        for read in inside.reads:
            if not finds_its_rows(plan, read, (before, step), held, rows):
                return False
        for done, factor, blocks in writers:
            first = done[before] * factor if step else 0
            held |= {(b, row % rows): row for b in blocks for row in range(first, done[step] * factor)}
        for read in inside.reads:
            # One unit may still read while the other one writes.
            if on_both_units(read, inside.writes) and not finds_its_rows(plan, read, (before, step), held, rows):
                return False
    return True


def finds_its_rows(plan, read, steps, held, rows):
    """Whether all rows that a read needs between two steps are in a ring."""
    done = plan.progress[read.index].rows
    for y in range(done[steps[0]], done[steps[1]]):
        low, high = (int(bound[y]) for bound in read.windows)
        for block in read.blocks:
            if any(held.get((block, row % rows)) != row for row in range(low, high)):
                return False
    return True


def test_a_stage_never_needs_rows_of_the_same_step():
    maker = GraphMaker(5)
    flow, plan = planned(maker.graph(everything(maker)), 2)
    for inside in flow.inside(0, len(flow.stages)).values():
        for read in inside.reads:
            done = plan.progress[read.index].rows
            for write in inside.writes:
                if set(write.blocks) & set(read.blocks):
                    made = plan.progress[write.index].rows * write.factor
                    for step in range(1, plan.steps + 1):
                        if done[step]:
                            assert read.windows[1][done[step] - 1] <= made[step - 1]
