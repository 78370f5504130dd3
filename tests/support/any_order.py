"""Runs a program in any order that its waits allow: what is well synchronised gives one result in all of them.

Nothing here knows what an instruction touches: instructions are executed by the instruction simulator's semantics, and
only waits and the order inside a unit hold them back. So it is evidence about the checker that owes nothing to the
footprints which emitter and checker share.
"""

import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.hazards import waits_of
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.isa_sim.registry import SEMANTICS

Results = Mapping[str, NDArray[np.int8]]
Choose = Callable[[Sequence[Unit]], Unit]
"""Which of the units that may go on does so."""


class StuckError(Exception):
    """No unit may go on, though instructions are left."""


def first_of(order: Sequence[Unit]) -> Choose:
    """Always the first unit in `order` that may go on: some run as far ahead, others lag as far behind as they can."""
    return lambda ready: min(ready, key=order.index)


def at_random(seed: int) -> Choose:
    """Any of them."""
    return random.Random(seed).choice


def run_in_order(program: Program, inputs: Results, choose: Choose) -> Results:
    """Outputs when units go on as `choose` says; within a unit instructions run one after the other."""
    simulator = IsaSimulator(program, check=False)
    simulator.reset(inputs)
    machine = simulator.machine
    queues = {u: [i for i in program.instructions if i.unit is u][::-1] for u in QUEUED_UNITS}
    done = dict.fromkeys(QUEUED_UNITS, 0)
    while any(queues.values()):
        ready = [
            u
            for u, queue in queues.items()
            if queue and all(done[v] >= n for v, n in zip(QUEUED_UNITS, waits_of(queue[-1]), strict=True))
        ]
        if not ready:
            raise StuckError(program.name)
        unit = choose(ready)
        instruction = queues[unit].pop()
        SEMANTICS[instruction.kind](machine, instruction)
        done[unit] += 1
    return simulator.outputs()
