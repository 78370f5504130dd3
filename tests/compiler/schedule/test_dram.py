"""The layout of DRAM: constants, then buffers; buffers that share words are never live together."""

from collections.abc import Callable
from itertools import combinations, count
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from intloom.common.errors import CapacityError
from intloom.compiler.ir import IntGraph
from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.program import Program, Role
from intloom.compiler.schedule import compile_graph, emit
from intloom.compiler.schedule.emit import dram
from intloom.compiler.schedule.emit.dram import DramLayout, lay_out
from intloom.compiler.schedule.plan import make_plan
from intloom.compiler.schedule.stages import build_stages
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker
from tests.support.random_graph import random_graph

BASE = preset("base")
SMALL = preset("nano").replace(scratch_kib=4)
"""Most tensors are in DRAM."""


def test_equal_constants_are_stored_once_and_start_at_words():
    maker = GraphMaker(1)
    stages = build_stages(maker.graph(maker.conv(maker.input(16, 4, 4), 16)), BASE, keep_intermediates=False)
    constants = [b"a" * 17, b"b" * 16, b"a" * 17]
    layout = lay_out(stages, make_plan(stages, None), constants, {})
    assert [layout.address(data) for data in constants] == [0, 2, 0]
    assert layout.image == b"a" * 17 + bytes(15) + b"b" * 16
    buffers = [v.buffer for v in (*stages.stages[0].operands, stages.stages[0].out)]
    assert sorted(map(layout.address, buffers)) == [3, 3 + 16]
    assert layout.words == 3 + 2 * 16


def _compiled(graph: IntGraph, live_ranges: Callable[..., Any]) -> tuple[Program, DramLayout]:
    """The program whose buffers are live for so long, and its layout."""
    layouts = []

    def keep(*arguments: Any) -> DramLayout:
        layouts.append(lay_out(*arguments))
        return layouts[-1]

    with patch.object(emit, "lay_out", keep), patch.object(dram, "_live_ranges", live_ranges):
        program = compile_graph(graph, SMALL)
    return program, layouts[-1]


def _always(slots: Any, _: Any) -> dict[Any, tuple[int, int]]:
    return {buffer: (0, len(slots)) for slot in slots for buffer in dram._used(slot)}


def _lives(program: Program, layout: DramLayout) -> list[tuple[int, int]]:
    """First and last instruction with a word of each buffer, of which no two share words; the host's last longer."""
    spans = [(at, at + buffer.words) for buffer, at in layout.buffers.items()]
    assert all(a[1] <= b[0] or b[1] <= a[0] for a, b in combinations(spans, 2))
    used: list[list[int]] = [[] for _ in spans]
    for index, instruction in enumerate(program.instructions):
        for access in footprint(instruction, SMALL):
            words = addresses(access) if access.memory is Memory.DRAM else np.array([], int)
            for (first, end), by in zip(spans, used, strict=True):
                if ((words >= first) & (words < end)).any():
                    by.append(index)
    hosts = {t.address for t in program.tensors if t.role in (Role.INPUT, Role.OUTPUT)}
    ends = [[-1, len(program.instructions)] if hosts & {*range(*span)} else [] for span in spans]
    return [(min(by), max(by)) for by in map(list.__add__, used, ends)]


@pytest.mark.parametrize("group", range(3))
def test_buffers_that_share_words_are_never_live_together(group, seed):
    """Where each buffer has words of its own, its instructions are known; the program is the same otherwise."""
    shared = 0
    for each in count(seed):
        if each >= seed + 20 and shared > 5:
            break
        graph, _ = random_graph(each, 30, SMALL)
        try:
            apart, own = _compiled(graph, _always)
        except CapacityError:  # a layer that does not fit at all
            continue
        program, layout = _compiled(graph, dram._live_ranges)
        assert [i.kind for i in program.instructions] == [i.kind for i in apart.instructions]
        placed = zip(layout.buffers.items(), _lives(apart, own), strict=True)
        for ((one, at), life), ((other, to), its) in combinations(placed, 2):
            if at < to + other.words and to < at + one.words:
                shared += 1
                assert life[1] < its[0] or its[1] < life[0], f"graph {each}: {one.name}, {other.name}"
