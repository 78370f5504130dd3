"""Events that meet in one cycle, in every state of every FSM of the accelerator."""

from pathlib import Path

import pytest

from intloom.compiler.schedule import compile_graph
from tests.hw.npu.coincidences import wanted_points
from tests.hw.npu.disturbed import Design, run, run_network, start
from tests.support.random_graph import random_graph
from tests.support.shapes import SHAPES

ROUNDS = 30
SHARE = 0.6
"""Of the points, reached in so few rounds; `make coverage` continues until all are."""


@pytest.mark.slow
def test_events_meet_in_all_states(tmp_path: Path) -> None:
    """After every disturbed run a soft reset ends; after some of them a program's results are compared."""
    params = SHAPES["nano"]
    seen, wanted = run(Design(params), tmp_path, 1, ROUNDS)[0], {*wanted_points(params)}
    assert not sorted(seen.keys() - wanted), "an excluded point was reached: the reason of its exclusion is wrong"
    assert len(seen) >= SHARE * len(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_programs_run_after_any_events(shape: str, tmp_path: Path, seed: int) -> None:
    """No output depends, while it is valid, on registers and memories before the reset."""
    params = SHAPES[shape]
    runs = [run(Design(params), tmp_path, seed, ROUNDS // 5, start(number)) for number in (1, 2 + seed % 1000)]
    assert len({digest for _, digest in runs}) == 1
    assert not sorted(runs[0][0].keys() - {*wanted_points(params)}), "an excluded point was reached"


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_every_cycle_of_a_network_has_its_cause(shape: str, tmp_path: Path, seed: int) -> None:
    """The counters of a whole network under random stalls equal an attribution from handshakes."""
    params = SHAPES[shape]
    graph, maker = random_graph(seed, 25, params)
    run_network(Design(params), tmp_path, seed, compile_graph(graph, params), maker.random_inputs())
