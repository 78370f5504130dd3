"""Finds the semantics of each instruction kind."""

from __future__ import annotations

from collections.abc import Callable

from intloom.hw.spec.isa import Instruction, Kind
from intloom.sim.isa_sim.machine import Machine

Semantics = Callable[[Machine, Instruction], None]
_SEMANTICS: dict[Kind, Semantics] = {}


def executes(*kinds: Kind) -> Callable[[Semantics], Semantics]:
    """Register the function that executes instructions of these kinds."""

    def register(function: Semantics) -> Semantics:
        for kind in kinds:
            _SEMANTICS[kind] = function
        return function

    return register


def semantics(kind: Kind) -> Semantics:
    """The function that executes instructions of this kind."""
    return _SEMANTICS[kind]


def executable_kinds() -> frozenset[Kind]:
    """All kinds that can be executed."""
    return frozenset(_SEMANTICS)
