"""Every computing instruction, alone on the memories as it meets them, leaves the scratchpad as it did there."""

from dataclasses import replace

import numpy as np
import pytest

from intloom.common.errors import UsageError
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind, TableUse, Unit
from intloom.hw.spec.params import preset
from intloom.sim.backend import RtlBackend
from intloom.sim.compare import compare
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.tiles import SCRATCHPAD, tile_slices

PARAMS = preset("nano").replace(scratch_kib=8, weight_kib=2, strip=16)
"""Small memories make many tiles, and load quickly."""


@pytest.fixture(scope="module")
def case():
    maker = GraphMaker(5)
    x = maker.conv(maker.input(6, 24, 20), 8, 3, stride=2)
    y = maker.add(maker.conv(x, 8, 3), x)
    graph = maker.graph(maker.conv(maker.max_pool(y, 3, pad=1), 20, 1))
    return compile_graph(graph, PARAMS), maker.random_inputs()


def computing(program):
    numbered = enumerate(program.instructions)
    return [n for n, i in numbered if i.unit in (Unit.MAC, Unit.VEC) and i.kind is not Kind.VTABLE]


def all_slices(program, inputs):
    names = {layer.name for layer in program.layers}
    tiles = sorted({program.provenance[n].tile for n in computing(program)})
    return [part for tile in tiles for part in tile_slices(program, inputs, names, tile)]


def test_every_computing_instruction_is_in_one_tile(case):
    program, inputs = case
    assert sorted(p.index for p in all_slices(program, inputs)) == computing(program)
    assert len(computing(program)) > len(program.layers), "some layer has several"


def test_each_alone_gives_what_the_whole_gives(case):
    program, inputs = case
    for part in all_slices(program, inputs):
        alone = IsaSimulator(part.program, check=True).run({})
        compare(part.expected, alone).require_equal()


def test_a_table_that_is_kept_comes_along(case):
    program, inputs = case
    # The second tile of a layer does with the table that the first has loaded.
    index = next(n for n in computing(program) if program.instructions[n].values.get("table") == TableUse.KEEP)
    conv = program.instructions[index]
    at = (conv["weights"] - PARAMS.table_words) % PARAMS.weight_words
    lavish = conv.with_fields(table=TableUse.LOAD, weights=at)
    changed = replace(program, instructions=(*program.instructions[:index], lavish, *program.instructions[index + 1 :]))
    before, after = (next(p for p in all_slices(c, inputs) if p.index == index) for c in (program, changed))
    compare(before.expected, after.expected).require_equal()
    compare(after.expected, IsaSimulator(after.program, check=True).run({})).require_equal()
    assert len(np.unique(after.expected[SCRATCHPAD])) > 10


def test_a_tile_that_is_not_there_is_refused_with_the_range(case):
    program, inputs = case
    with pytest.raises(UsageError, match=r"tile must be from 0 to \d+ in these layers, not 99"):
        list(tile_slices(program, inputs, {program.layers[0].name}, 99))


def test_a_tile_that_continues_sums_cannot_run_alone():
    maker = GraphMaker(7)
    program = compile_graph(
        maker.graph(maker.conv(maker.input(4000, 1, 1), 8, 1)), preset("nano").replace(weight_kib=2)
    )
    inputs, layers = maker.random_inputs(), {layer.name for layer in program.layers}
    continued = {
        program.provenance[n].tile for n in computing(program) if program.instructions[n].values.get("continue_sums")
    }
    with pytest.raises(UsageError, match="continues the sums of the tile before it, so it cannot run alone"):
        list(tile_slices(program, inputs, layers, max(continued)))


@pytest.mark.slow
def test_tiles_run_alone_on_the_rtl(case):
    program, inputs = case
    backend = RtlBackend()
    for part in list(tile_slices(program, inputs, {layer.name for layer in program.layers}, 0)):
        compare(part.expected, backend.run(part.program, {}).outputs).require_equal()
