"""Buffers in the scratchpad: apart while they live, inside the memory, and only where they save traffic."""

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path

import onnx
import pytest

from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import load_model
from intloom.compiler.ir import IntGraph
from intloom.compiler.program.file import from_bytes, to_bytes
from intloom.compiler.program.program import MemoryTiming, Role
from intloom.compiler.schedule import compile_graph
from intloom.compiler.schedule.plan import make_plan
from intloom.compiler.schedule.plan.dataflow import Dataflow
from intloom.compiler.schedule.plan.groups import Goal, Group, find_groups
from intloom.compiler.schedule.plan.packing import Packing
from intloom.compiler.schedule.plan.residency import Slot, choose_slots
from intloom.compiler.schedule.plan.tiling import choose_tiling, choose_tilings, tile_rects, tile_words
from intloom.compiler.schedule.stages import build_stages
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import HardwareParams, preset
from intloom.quantization import QuantizeOptions, quantize
from intloom.sim.regress.graphs import GraphMaker
from intloom.zoo import build
from tests.support.random_graph import random_graph
from tests.support.yolo_graph import yolo_graph

BASE = preset("base")


def slots_of(graph, params: HardwareParams) -> tuple[Slot, ...]:
    stages = build_stages(graph, params, keep_intermediates=False)
    return make_plan(stages, Goal(memory=MemoryTiming(), word_beats=1, stripe_heights=1))


def check_addresses(slots: Sequence[Slot], params: HardwareParams) -> None:
    for slot in slots:
        ranges = sorted((b.address, b.address + b.words) for b in slot.local.values())
        for (_, end), (start, _) in pairwise(ranges):
            assert end <= start
        assert all(start >= 0 and end <= slot.low <= params.scratch_words for start, end in ranges)
        assert (slot.tiling is None) == (slot.stripes is not None)
        if slot.tiling is not None:
            assert slot.tiling.scratch <= params.scratch_words - slot.low


@pytest.mark.parametrize("kib", [32, 64, 256])
@pytest.mark.parametrize("size", [64, 128])
def test_buffers_that_live_together_are_apart(size, kib):
    graph, _ = yolo_graph(size)
    params = BASE.replace(scratch_kib=kib)
    check_addresses(slots_of(graph, params), params)


@pytest.mark.parametrize("seed", range(10))
def test_buffers_of_random_graphs_are_apart(seed):
    graph, _ = random_graph(seed)
    params = BASE.replace(scratch_kib=8)
    check_addresses(slots_of(graph, params), params)


@pytest.mark.slow
def test_groups_in_stripes_lose_a_buffer_that_they_have_no_ring_for(tmp_path):
    """In this network, buffers between groups fit by their sizes but not side by side."""
    onnx.save(build("yolov8n-seg", 160, 0), tmp_path / "float.onnx")
    quantize(tmp_path / "float.onnx", tmp_path / "model.onnx", None, QuantizeOptions(samples=1))
    slots = slots_of(fold_model(load_model(tmp_path / "model.onnx")).graph, BASE)
    check_addresses(slots, BASE)


@pytest.mark.parametrize("seed", range(4))
def test_every_tile_of_a_cut_fits_its_words(seed):
    """Also the odd one that overlaps more input than the first tile and the middle one, from which costs follow."""
    stages = build_stages(random_graph(seed)[0], BASE, keep_intermediates=False).stages
    for stage, words in product(stages, (*range(60, 400, 20), *range(400, 2000, 160))):
        tiling = choose_tiling(stage, words)
        if tiling is not None:
            rects = tile_rects(stage, tiling.tile_h, tiling.tile_w)
            assert all(tile_words(stage, r, c) <= words for r in rects for c in stage.layout(tiling.chunk))


def test_small_tensors_stay_on_chip_from_producer_to_last_reader():
    maker = GraphMaker(1)
    x = maker.conv(maker.input(16, 16, 16), 32, 3)
    y = maker.conv(x, 32, 3)
    for _ in range(3):
        y = maker.conv(y, 32, 3)
    program = compile_graph(maker.graph(maker.add(x, y)), BASE)
    loads = [i for i in program.instructions if i.kind is Kind.LOAD and i["target"] == 0]
    assert sum(i["n0"] * i["n1"] * i["n2"] for i in loads) == 16 * 16
    assert {t.role for t in program.tensors} == {Role.INPUT, Role.OUTPUT}


def test_a_skip_connection_that_does_not_fit_goes_through_dram():
    maker = GraphMaker(2)
    x = maker.conv(maker.input(16, 32, 32), 16, 3, table=False)
    y = x
    for _ in range(12):
        y = maker.conv(y, 64, 3, table=False)
    program = compile_graph(maker.graph(maker.conv(maker.concat(x, y), 16, table=False)), BASE.replace(scratch_kib=64))
    assert any(t.role is Role.SHARED for t in program.tensors)


def test_more_effort_never_gives_a_worse_program():
    graph, _ = yolo_graph(96)
    goal = Goal(memory=MemoryTiming(), word_beats=1, stripe_heights=1)
    first, second = (compile_graph(graph, BASE.replace(scratch_kib=64), effort=e) for e in (1, 2))
    assert goal.score(second) <= goal.score(first)


def test_a_program_records_the_memory_that_it_was_scheduled_for():
    graph, _ = yolo_graph(64)
    slow = MemoryTiming(read_latency=400, bandwidth=0.25)
    program = compile_graph(graph, BASE, memory=slow)
    assert program.memory == slow
    assert from_bytes(to_bytes(program), Path("memory.loom"))[0].memory == slow
    assert program.predicted_cycles > compile_graph(graph, BASE).predicted_cycles


def test_each_tensor_that_leaves_the_chip_has_a_reason():
    graph, _ = yolo_graph(96)
    params = BASE.replace(scratch_kib=32)
    program = compile_graph(graph, params)
    reasons = {r.tensor: r.reason for r in program.residences}
    local = {t.name for t in program.local_tensors}
    assert "input" in reasons[graph.inputs[0]]
    assert all("output" in reasons[o] for o in graph.outputs)
    assert sum(not r for r in reasons.values()) > len(reasons) / 2
    assert any("more than the scratchpad" in r or "leaves no room" in r for r in reasons.values())
    assert not {t.name for t in program.tensors} & {n for n, r in reasons.items() if not r and n in local}


def test_a_buffer_that_leaves_no_room_for_tiles_goes_through_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words below a buffer at a high address are free, but tiles lie above all buffers."""
    maker = GraphMaker(3)
    x = maker.conv(maker.input(64, 52, 52), 64, 3, stride=2, group=64)
    graph = maker.graph(maker.conv(x, 64, 1))
    stages = build_stages(graph, BASE, keep_intermediates=False)
    groups = [Group(k, k + 1) for k in range(2)]

    def high(packing: Packing, size: int) -> tuple[dict[object, int], int]:
        return {item: size - 80 - item.words for item in packing}, size - 80

    for fit, kept in ((Packing.tightest_fit, True), (high, False)):
        monkeypatch.setattr(Packing, "tightest_fit", fit)
        slots = choose_slots(Dataflow(stages), groups, choose_tilings(stages), BASE, keep=True)
        assert all(bool(slot.local) == kept for slot in slots)
        assert all(slot.tiling is not None and slot.tiling.tiles < 60 for slot in slots)


def cells(count: int) -> IntGraph:
    """Cells of separable convolutions that read the results of the two cells before, as in NASNet."""
    maker, channels = GraphMaker(1), 44

    def separable(x: str, kernel: int) -> str:
        for _ in range(2):
            x = maker.conv(maker.conv(x, channels, kernel, group=channels), channels, 1)
        return x

    before = last = maker.conv(maker.input(16, 20, 20), 6 * channels, 1)
    for _ in range(count):
        a, b = maker.conv(before, channels, 1), maker.conv(last, channels, 1)
        pairs = (
            (separable(b, 5), separable(a, 3)),
            (separable(a, 5), separable(a, 3)),
            (maker.max_pool(b, 3, 1, 1), a),
            (b, a),
            (separable(b, 3), b),
        )
        before, last = last, maker.concat(a, *(maker.add(*pair) for pair in pairs))
    return maker.graph(last)


def calls_of_choose_slots(count: int) -> int:
    stages = build_stages(cells(count), BASE, keep_intermediates=False)
    flow, tilings = Dataflow(stages), choose_tilings(stages)
    groups = find_groups(flow, BASE, tilings, Goal(memory=MemoryTiming(), word_beats=1, stripe_heights=1))
    calls = Counter[str]()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: calls.update([event]))
    try:
        choose_slots(flow, groups, tilings, BASE, keep=True)
    finally:
        sys.setprofile(before)
    return calls["call"] + calls["c_call"]


def test_the_work_grows_in_proportion_to_the_network() -> None:
    """Twice the cells once took four times the calls: whatever left the scratchpad, all was packed and cut again."""
    assert calls_of_choose_slots(16) < 3 * calls_of_choose_slots(8)
