"""What only copies read is not stored; what is read is, and every result stays right."""

from intloom.compiler.program.program import Role
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker
from tests.support.golden import golden_program

BASE = preset("base")
SIDE = 12


def split_block():
    """Both halves reach the concatenation through tables; only the second is read by a convolution too."""
    maker = GraphMaker(3)
    whole = maker.conv(maker.input(16, SIDE, SIDE), 32, 1)
    first, second = maker.slice(whole, 0, 16), maker.slice(whole, 16, 32)
    made = maker.conv(second, 16, 3)
    joined = maker.concat(maker.apply_table(first), maker.apply_table(second), made)
    return maker.graph(maker.conv(joined, 16, 1)), maker.random_inputs()


def test_the_half_that_only_a_table_reads_is_not_stored():
    graph, inputs = split_block()
    program = golden_program(graph, inputs, BASE, effort=0)
    stored = sum(i["n0"] * i["n1"] * i["n2"] for i in program.instructions if i.kind is Kind.STORE)
    # The second half, both halves through their tables, the inner convolution's result, and the output.
    assert stored == 5 * SIDE * SIDE


def test_a_half_stored_tensor_is_not_offered_for_comparison():
    graph, _ = split_block()
    program = compile_graph(graph, BASE, effort=0)
    shared = {p.name for p in program.tensors if p.role is Role.SHARED}
    whole = graph.nodes[0].output
    assert whole not in shared
    assert graph.nodes[2].output in shared
