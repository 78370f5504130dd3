"""Registry of the semantics of each instruction kind."""

from collections.abc import Callable

from intloom.common.registry import Registry
from intloom.hw.spec.isa import Instruction, Kind
from intloom.sim.isa_sim.machine import Machine

Semantics = Callable[[Machine, Instruction], None]

SEMANTICS: Registry[Kind, Semantics] = Registry("semantics")
executes = SEMANTICS.register
"""Register the function that executes instructions of these kinds."""
