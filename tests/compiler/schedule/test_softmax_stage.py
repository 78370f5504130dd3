"""Softmax: the program equals the golden model for random sizes, exponentials and hardware."""

import random

import pytest

from intloom.common.errors import UnsupportedError
from intloom.compiler.ir import Concat, Softmax
from intloom.compiler.program.forecast import bound
from intloom.compiler.schedule import compile_graph, tuning
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.sim.backend import IsaBackend
from intloom.sim.compare import compare
from intloom.sim.regress.graphs import GraphMaker, softmax
from intloom.sim.tiles import tile_slices
from tests.support.golden import golden_program

HARDWARE = {name: preset(name).replace(vector_softmax=True) for name in ("nano", "small", "base")}


@pytest.mark.parametrize("name", HARDWARE)
@pytest.mark.parametrize("effort", [0, 1])
def test_random_sizes(name: str, effort: int, rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    graph, inputs = maker.finish(
        softmax(maker, maker.input(rng.randint(1, 90), rng.randint(1, 20), rng.randint(1, 12)))
    )
    golden_program(graph, inputs, HARDWARE[name], effort)


@pytest.mark.parametrize("name", HARDWARE)
def test_two_with_other_exponentials_between_convolutions(name: str, rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    channels, height, width = rng.randint(2, 40), rng.randint(1, 40), rng.randint(1, 20)
    x = maker.conv(maker.input(3, height, width), channels)
    shape = (channels, height, width)
    a, b = (maker.node(Softmax, (x,), shape, **maker.exponentials(channels)) for _ in range(2))
    c = maker.node(Softmax, (b,), shape, **maker.exponentials(channels))
    joined = maker.node(Concat, (a, c), (2 * channels, height, width))
    graph, inputs = maker.finish(maker.conv(joined, 5))
    golden_program(graph, inputs, HARDWARE[name])


def test_exponentials_are_loaded_once(rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    graph, inputs = maker.finish(softmax(maker, maker.input(200, 60, 40)))
    program = golden_program(graph, inputs, HARDWARE["small"])
    kinds = [i.kind for i in program.instructions]
    assert kinds.count(Kind.VEXP) == 3
    assert kinds.count(Kind.VSOFTMAX) > 1


@pytest.mark.parametrize("size", [(1, 197), (14, 14)])
def test_convolutions_overlap_with_bands_of_whole_tensors(
    size: tuple[int, int], rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    # So many weights that stripes would load them again in every step.
    x = maker.conv(maker.input(768, *size), 192)
    graph, inputs = maker.finish(maker.conv(softmax(maker, x), 768))
    program = golden_program(graph, inputs, HARDWARE["base"])
    assert [i.kind for i in program.instructions].count(Kind.VSOFTMAX) == tuning.PARALLEL_BANDS
    monkeypatch.setattr(tuning, "PARALLEL_BANDS", 1)
    in_turn = compile_graph(graph, HARDWARE["base"])
    assert program.predicted_cycles < in_turn.predicted_cycles - bound(program).vector / 2


def test_a_tile_alone_has_its_exponentials(rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    graph, inputs = maker.finish(softmax(maker, maker.input(20, 5, 4)))
    program = golden_program(graph, inputs, HARDWARE["small"])
    (found,) = tile_slices(program, inputs, {program.layers[0].name}, 0)
    made = IsaBackend(check=False).run(found.program, {}).outputs
    compare(found.expected, made).require_equal()


@pytest.mark.parametrize(("channels", "reason"), [(8, "lacks the instruction"), (1025, "blocks must be")])
def test_what_hardware_cannot_run(channels: int, reason: str) -> None:
    maker = GraphMaker(1)
    graph, _ = maker.finish(softmax(maker, maker.input(channels, 1, 1)))
    params = preset("nano").replace(vector_softmax=channels > 8)
    with pytest.raises(UnsupportedError, match=reason):
        compile_graph(graph, params)
