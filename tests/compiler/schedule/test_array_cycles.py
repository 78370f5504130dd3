"""The estimate of a stage's array cycles is the forecast's cost of the instructions that the stage becomes."""

import pytest

from intloom.compiler.program.cost import conv_busy
from intloom.compiler.schedule import compile_graph
from intloom.compiler.schedule.emit.order import slot_tasks
from intloom.compiler.schedule.plan import make_plan
from intloom.compiler.schedule.stages import build_stages
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker

SHAPES = {
    "words": (32, 48, 1, {}),
    "kernel": (20, 40, 3, {"stride": 2}),
    "image": (3, 16, 3, {"stride": 2}),
    "zero points": (16, 32, 3, {"stride": 4, "nine_bits": True}),
    "groups": (64, 64, 3, {"group": 2}),
    "few pixels": (64, 64, 5, {"stride": 4}),
}


@pytest.mark.parametrize("name", ["small", "base", "large"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_estimate_of_all_tiles_is_the_cost_of_their_instructions(name: str, shape: str) -> None:
    params = preset(name)
    inputs, outputs, kernel, fields = SHAPES[shape]
    maker = GraphMaker(1)
    graph = maker.graph(maker.conv(maker.input(inputs, 12, 10), outputs, kernel, **fields))
    stages = build_stages(graph, params, keep_intermediates=True)
    tasks = slot_tasks(make_plan(stages, None), stages.needed)
    program = compile_graph(graph, params, keep_intermediates=True)
    spent = sum(conv_busy(i, params) for i in program.instructions if i.kind is Kind.CONV)
    assert spent == sum(t.stage.tile_cycles(t.rect, t.chunk.out_blocks) for t in tasks)
