"""The forecast: in its parts, and against cycles measured on the RTL."""

from dataclasses import replace
from itertools import product

import pytest

from intloom.compiler.ir import Conv
from intloom.compiler.program.cost import instruction_cost
from intloom.compiler.program.forecast import Forecast, bound, forecast, forecast_of
from intloom.compiler.program.program import MemoryTiming, Provenance
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec import timing
from intloom.hw.spec.isa import INSTRUCTION_BYTES, ConvMode, Instruction, Kind, LoadTarget, Unit, make
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.regress.graphs import GraphMaker

BASE = preset("base").replace(lanes=16, vector_lanes=16)


def one_layer(*work: Instruction, params: HardwareParams = BASE, memory: MemoryTiming | None = None) -> Forecast:
    """The forecast of instructions of one layer."""
    return forecast(work, [Provenance(layer=0, tile=0)] * len(work), 1, params, memory)


def test_units_overlap_unless_they_wait():
    work = [make(Kind.VCOPY, out_w=1000), make(Kind.CONV, out_w=1000, in_blocks=2)]
    beside = one_layer(*work).cycles
    after = one_layer(work[0], work[1].with_fields(wait_vec=1)).cycles
    assert 2000 < beside < 2300
    assert 3000 < after < 3300


def test_a_full_queue_holds_the_fetcher_up():
    loads = [make(Kind.LOAD, n0=1, wait_vec=1), *[make(Kind.LOAD, n0=1)] * 20]
    slow = make(Kind.VCOPY, out_w=5000)
    late = make(Kind.CONV, out_w=64)
    assert one_layer(slow, *loads, late).cycles > 5000 + 64
    assert one_layer(slow, late, *loads).layers[0] > 5000


def test_layers_add_up_to_the_end_of_the_last():
    maker = GraphMaker(0)
    x = maker.conv(maker.input(16, 40, 40), 32, 3)
    program = compile_graph(maker.graph(maker.conv(x, 16, 3)), BASE)
    assert sum(layer.predicted_cycles for layer in program.layers) == program.predicted_cycles


def test_a_program_keeps_the_forecast_of_its_schedule(monkeypatch):
    """Another memory, or other instructions, need a forecast of their own."""
    maker = GraphMaker(0)
    program = compile_graph(maker.graph(maker.conv(maker.input(16, 8, 8), 16, 1)), BASE)
    own = forecast(program.instructions, program.provenance, len(program.layers), BASE, program.memory)
    assert forecast_of(program, program.memory) == forecast_of(replace(program), program.memory) == own
    made = []
    monkeypatch.setattr("intloom.compiler.program.forecast.forecast", lambda *parts: made.append(parts))
    assert forecast_of(program, program.memory) == own and not made
    forecast_of(replace(program), program.memory)
    forecast_of(program, MemoryTiming(bandwidth=0.5))
    assert [parts[-1].bandwidth for parts in made] == [1.0, 0.5]


def test_a_slower_memory_makes_moves_slower_and_nothing_else():
    moves = [make(Kind.LOAD, n0=4000), make(Kind.CONV, wait_load=1, out_w=64, in_blocks=2)]
    full, half = (one_layer(*moves, memory=MemoryTiming(bandwidth=bandwidth)).cycles for bandwidth in (1.0, 0.5))
    late = one_layer(*moves, memory=MemoryTiming(read_latency=400)).cycles
    assert half - full == 4000
    # Fetch and load wait once each.
    assert late - full == 2 * 300


def test_instructions_take_beats_of_the_port():
    nano = preset("nano")
    copies = [make(Kind.VCOPY, out_w=16)] * 96
    load = make(Kind.LOAD, n0=6000, target=LoadTarget.WEIGHT)
    alone, beside = (one_layer(*work, params=nano).done[0][0] for work in ([load], [load, *copies]))
    beats = len(copies) * INSTRUCTION_BYTES // nano.word_bytes
    # All are fetched while the load transfers, but those before its first word.
    assert beats // 2 < beside - alone < beats


def test_reads_and_writes_take_turns_only_where_they_share_beats():
    moves = [make(Kind.LOAD, n0=3000), make(Kind.STORE, n0=1000)]
    origins = [Provenance(layer=0, tile=0), Provenance(layer=1, tile=0)]
    shared, apart = (forecast(moves, origins, 2, BASE, MemoryTiming(bandwidth=bandwidth)) for bandwidth in (1.0, 0.0))
    # The store is alone until the first read is due, 100 cycles from its request.
    both = 1000 - 100
    assert shared.done[0][0] - apart.done[0][0] == pytest.approx(both, abs=20)
    assert shared.done[3][0] - apart.done[3][0] == pytest.approx(both, abs=20)


@pytest.mark.parametrize("bandwidth", [0.0, 0.3, 0.5, 0.7, 1.0, 1.5, 3.0])
def test_every_bandwidth_comes_to_an_end(bandwidth):
    moves = [make(kind, n0=n) for n in (1, 7, 100) for kind in (Kind.LOAD, Kind.STORE)] * 5
    assert len(one_layer(*moves, memory=MemoryTiming(bandwidth=bandwidth)).done[3]) == 15


def test_a_load_into_the_scratchpad_falls_in_behind_results_of_several_cycles():
    conv = make(Kind.CONV, out_w=4000, in_blocks=2)
    moves = [conv, make(Kind.LOAD, n0=2000), make(Kind.STORE, wait_load=1, n0=1)]
    slow, quick = (one_layer(*moves, params=BASE.replace(lanes=lanes)).done[0][0] for lanes in (8, 16))
    assert slow - quick == pytest.approx(2000, rel=0.05)
    weights = [conv, make(Kind.LOAD, n0=2000, target=1), moves[2]]
    apart = one_layer(*weights, params=BASE.replace(lanes=8)).done[0][0]
    assert apart == pytest.approx(quick, abs=2)


def test_a_load_into_the_scratchpad_waits_for_every_result_of_a_pooling_instruction():
    # 2 x (100 + 4) cycles for 100 results of a row.
    pooling = make(Kind.VMAX, kernel_w=5, in_h=100, in_w=104, out_h=100, out_w=100, out_row=100)
    load, params = make(Kind.LOAD, n0=2000), BASE.replace(vector_lanes=8)
    beside, alone = (one_layer(*work, params=params).done[0][0] for work in ([pooling, load], [load]))
    assert beside - alone == pytest.approx(2000 / (1 - 100 / 208) - 2000, rel=0.01)


def test_moves_have_their_measured_rates_beside_a_depthwise_convolution():
    """Of the vector unit, whether it takes words whole or in slices."""
    shape = {
        "in_h": 100,
        "in_w": 100,
        "kernel_h": 3,
        "kernel_w": 3,
        "out_h": 90,
        "out_w": 90,
        "out_row": 90,
        "b_base": 20_000,
    }
    beside = make(Kind.VDEPTHWISE, **shape)
    rates = {Kind.LOAD: timing.DEPTHWISE_LOAD_RATE, Kind.STORE: timing.DEPTHWISE_STORE_RATE}
    for kind, params in product(rates, (BASE, BASE.replace(vector_lanes=8))):
        move = make(kind, n0=2000)
        slow, quick = (one_layer(*work, params=params).done[move.unit][0] for work in ([beside, move], [move]))
        assert slow - quick == pytest.approx(2000 / rates[kind] - 2000, rel=0.05)


def test_moves_wait_in_their_queue_until_the_bus_has_taken_those_before():
    stores = [make(Kind.STORE, n0=64)] * (BASE.axi_outstanding + BASE.queue_depth + 40)
    late = make(Kind.CONV, out_w=64)
    assert one_layer(*stores, late, memory=MemoryTiming(bandwidth=0.5)).started[1][0] > 20 * 64


@pytest.mark.parametrize("outstanding", [1, 2])
@pytest.mark.parametrize("bandwidth", [0.0, 0.25])
def test_a_burst_waits_for_the_end_of_the_one_whose_place_it_takes(outstanding, bandwidth):
    few = BASE.replace(axi_outstanding=outstanding, axi_burst=4)
    memory = MemoryTiming(bandwidth=bandwidth, read_latency=200)
    short, long = (
        one_layer(make(Kind.LOAD, n0=4 * bursts), params=few, memory=memory).done[0][0] for bursts in (10, 110)
    )
    beats = 4 if not bandwidth else 1 + 3 / bandwidth  # the first one is there after a latency
    assert long - short == pytest.approx(100 / outstanding * (200 + timing.LOAD_TRIP + beats), rel=0.01)


def test_a_short_first_burst_is_followed_by_full_ones():
    few = BASE.replace(axi_outstanding=1, axi_burst=4)
    loads, memory = (make(Kind.LOAD, dram=dram, n0=40 + dram % 2) for dram in (0, 3)), MemoryTiming(read_latency=200)
    aligned, late = (one_layer(load, params=few, memory=memory).done[0][0] for load in loads)
    assert late - aligned == pytest.approx(200 + timing.LOAD_TRIP + 1, abs=4)


@pytest.mark.parametrize(("runs", "early"), [({"n0": 400}, True), ({"n0": 4, "n1": 100, "dram_s1": 8}, False)])
def test_a_load_starts_when_the_last_run_before_it_begins(runs, early):
    few = BASE.replace(axi_outstanding=1, axi_burst=4)
    found = one_layer(*[make(Kind.LOAD, **runs)] * 2, params=few)
    assert (found.started[0][1] < 0.05 * found.done[0][0]) == early
    assert early or found.started[0][1] > 0.9 * found.done[0][0]


def test_a_load_starts_when_the_bus_has_room_for_it_and_a_store_has_its_turn():
    loads = [make(Kind.LOAD, n0=1920)] * 5
    found = one_layer(*loads, make(Kind.STORE, n0=80))
    started, done = found.started[0], found.done[0]
    ahead = (BASE.axi_outstanding + timing.QUEUED_BURSTS) * BASE.axi_burst
    assert done[0] - started[1] == pytest.approx(ahead, abs=BASE.axi_burst)
    assert done[4] - done[0] == 4 * 1920
    assert found.done[3][0] < done[0]


def test_a_store_goes_at_the_pace_of_a_vector_unit_of_half_width():
    work = [make(Kind.VCOPY, out_w=4000), make(Kind.STORE, n0=1000)]
    wide, half, narrow = (one_layer(*work, params=BASE.replace(vector_lanes=lanes)).done[3][0] for lanes in (16, 8, 2))
    assert half - wide == pytest.approx(1000 / timing.CONTENDED_RATE - 1000, abs=10)
    assert narrow - wide == pytest.approx(1000 / 7, abs=10)


def test_a_depthwise_convolution_is_slower_beside_packed_pixels():
    """Whether the CONV begins before it or after it, and as long as both run."""
    depthwise = make(
        Kind.VDEPTHWISE, in_h=112, in_w=112, kernel_h=3, kernel_w=3, stride_w=2, out_w=56, b_base=3000, out_base=3100
    )
    fields = {"in_h": 9, "in_w": 224, "kernel_h": 3, "stride_w": 2, "out_base": 5000}
    packed = make(Kind.CONV, mode=ConvMode.PACKED, **fields, out_w=400)
    dense = packed.with_fields(mode=ConvMode.BLOCKS)
    short = packed.with_fields(out_w=20)

    def cycles(*work):
        found = one_layer(*work)
        return found.done[Unit.VEC][0] - found.started[Unit.VEC][0]

    alone, cost = cycles(depthwise), instruction_cost(depthwise, BASE)
    assert alone == cycles(dense, depthwise) == cost.cycles
    longer = cost.slower * cost.work
    assert longer > 0.5 * alone
    for work in ((packed, depthwise), (depthwise, packed)):
        assert cycles(*work) - alone == pytest.approx(longer, abs=0.1 * longer)
    assert 0 < cycles(short, depthwise) - alone < 0.5 * longer


@pytest.mark.parametrize("word_code", [False, True])
@pytest.mark.parametrize("bandwidth", [0.25, 1.0])
def test_no_forecast_is_below_its_bound(bandwidth, word_code):
    """A narrow bus binds; the bound follows from the instructions alone. Coded weights pass it as code."""
    maker = GraphMaker(0)
    graph = maker.graph(maker.conv(maker.input(48, 4, 4), 64, 3))
    graph = replace(graph, nodes=tuple(replace(n, weights=n.weights >> 6) for n in graph.nodes if isinstance(n, Conv)))
    params = preset("nano").replace(word_code=word_code)
    program = compile_graph(graph, params, memory=MemoryTiming(bandwidth=bandwidth))
    assert any(i.values.get("coded") for i in program.instructions) == word_code
    least = bound(program)
    assert 0 < least.cycles <= program.predicted_cycles
    moved = sum(layer.dram_words for layer in program.layers)
    assert least.bus == moved / bandwidth
    assert least.array >= program.macs / (program.params.rows * program.params.cols)
