"""Which layer each cycle of a run belongs to, measured or forecast."""

from __future__ import annotations

from collections.abc import Sequence

from intloom.compiler.program.program import Provenance
from intloom.hw.spec.isa import Instruction, Unit

Times = Sequence[Sequence[int]]
"""For each queued unit the cycles at which its instructions started, or were done, in order."""


def layer_cycles(
    instructions: Sequence[Instruction],
    provenance: Sequence[Provenance],
    layers: int,
    pulses: tuple[Times, Times],
    window: tuple[int, int],
) -> list[int]:
    """Cycles of every layer; together all of the half-open window of cycles.

    The array is the clock: the time from the end of one CONV to the end of the next belongs to the latter's layer,
    but for what lies before its start and the end of vector instructions at work there. What comes after the last
    CONV belongs to the layers that finish there.

    Parameters
    ----------
    instructions, provenance
        The program's.
    layers
        How many layers it has.
    pulses
        When each instruction started and when it was done.
    window
        First cycle, and the one after the last.
    """
    cycles = [0] * layers
    at, last = window
    vector = _Work(instructions, provenance, pulses, Unit.VEC)
    for layer, start, done in _Work(instructions, provenance, pulses, Unit.MAC).items:
        if start > at:
            at = vector.charge(cycles, at, start)
        cycles[layer] += done - at
        at = done
    at = vector.charge(cycles, at, last)
    final = next((p.layer for p in reversed(provenance) if 0 <= p.layer < layers), None)
    if final is not None:
        cycles[final] += last - at
    return cycles


class _Work:
    """The finished instructions of one unit as (layer, start, done), in order."""

    def __init__(
        self,
        instructions: Sequence[Instruction],
        provenance: Sequence[Provenance],
        pulses: tuple[Times, Times],
        unit: Unit,
    ) -> None:
        own = [p.layer for i, p in zip(instructions, provenance, strict=True) if i.unit is unit]
        started, done = pulses
        self.items: list[tuple[int, int, int]] = list(zip(own, started[unit], done[unit], strict=False))
        self._next = 0

    def charge(self, cycles: list[int], first: int, last: int) -> int:
        """Charge the layers at work between `first` and `last` with their time; gives the end of the last such time."""
        at = first
        while self._next < len(self.items) and self.items[self._next][1] < last:
            layer, _, done = self.items[self._next]
            if done > at:
                stop = min(done, last)
                # A pause before a vector instruction is that instruction's own wait.
                cycles[layer] += stop - at
                at = stop
            if done > last:
                break
            self._next += 1
        return at
