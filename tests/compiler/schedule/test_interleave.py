"""Vector tasks move forward, never past what they need, and never into memory that is still in use."""

from intloom.compiler.program.soundness import check_program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind, Unit
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker

BASE = preset("base")


def pooled(seed: int = 0):
    maker = GraphMaker(seed)
    x = maker.conv(maker.input(3, 160, 160), 32, 7, stride=2)
    y = maker.max_pool(x, 3, 2, 1)
    return maker, maker.graph(maker.conv(y, 32, 3))


def test_a_pool_runs_beside_the_convolution_before_it():
    _, graph = pooled()
    program = compile_graph(graph, BASE, effort=0)
    check_program(program)
    order = [program.provenance[k].layer for k, i in enumerate(program.instructions) if i.unit in (Unit.MAC, Unit.VEC)]
    last_of_first = max(k for k, layer in enumerate(order) if layer == 0)
    assert order.index(1) < last_of_first
    assert order.index(2) > last_of_first


def test_the_pool_costs_almost_no_time():
    _, graph = pooled()
    program = compile_graph(graph, BASE)
    words = sum(
        i["out_h"] * i["out_w"] * i["blocks"] * i["kernel_h"] * i["kernel_w"]
        for i in program.instructions
        if i.kind is Kind.VMAX
    )
    assert program.layers[1].predicted_cycles < words / 2


def test_tasks_of_a_layer_keep_their_order():
    _, graph = pooled()
    program = compile_graph(graph, BASE)
    tiles = [p.tile for p, i in zip(program.provenance, program.instructions, strict=True) if i.kind is Kind.VMAX]
    assert tiles == sorted(tiles)
