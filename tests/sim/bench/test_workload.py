"""The hand-made workload is a sound program."""

import numpy as np
import pytest

from intloom.hw.spec.params import preset
from intloom.sim.bench.workload import dense_program
from intloom.sim.isa_sim import IsaSimulator


@pytest.mark.parametrize("name", ["nano", "base"])
def test_the_workload_is_free_of_races_and_computes_something(name):
    program, inputs = dense_program(preset(name), side=8, blocks=2, repeats=3)
    output = IsaSimulator(program, check=True).run(inputs)["output"]
    assert len(np.unique(output)) > 50
