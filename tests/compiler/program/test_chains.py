"""Layers in a chain alternate; the least traffic counts every word once."""

from intloom.compiler.program.layers import chains
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.formats import move_words
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker

PARAMS = preset("base").replace(scratch_kib=16)


def three_convolutions(effort):
    """Three convolutions whose tensors do not fit the scratchpad as a whole."""
    maker = GraphMaker(1)
    x = maker.input(16, 64, 40)
    y = maker.conv(maker.conv(maker.conv(x, 16, 3), 16, 5), 16, 3)
    return compile_graph(maker.graph(y), PARAMS, effort=effort)


def moved(program):
    return sum(move_words(i) for i in program.instructions if i.kind in (Kind.LOAD, Kind.STORE))


def test_layers_in_stripes_are_one_chain():
    program = three_convolutions(1)
    (chain,) = chains(program)
    assert chain.layers == (0, 1, 2)
    # Input and output, and the weights, each once.
    assert chain.moved_words == chain.least_words == moved(program)
    assert chain.least_words == 2 * 64 * 40 + len(program.image) // PARAMS.word_bytes


def test_layers_one_after_the_other_are_chains_of_one():
    program = three_convolutions(0)
    found = chains(program)
    assert [c.layers for c in found] == [(0,), (1,), (2,)]
    assert sum(c.moved_words for c in found) == moved(program)
    # Tiles of 3x3 kernels load rows at their borders twice.
    assert all(c.moved_words > c.least_words > 2 * 64 * 40 for c in found)
