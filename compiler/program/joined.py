"""Several programs of one model as one, for counting and showing: nobody runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from intloom.compiler.program.program import Layer, Place, Program, Provenance, Role


def joined(programs: Sequence[Program]) -> Program:
    """One program as it is; of several the sum: all instructions, layers and places, in the order of the regions.

    A tensor that goes from one region to another stands at the place where it was made.
    """
    if len(programs) == 1:
        return programs[0]
    layers: list[Layer] = []
    provenance: list[Provenance] = []
    places: dict[str, Place] = {}
    made = {p.name for program in programs for p in program.places if p.role is not Role.INPUT}
    for program in programs:
        first = len(layers)
        provenance += [replace(p, layer=p.layer + first if p.layer >= 0 else p.layer) for p in program.provenance]
        layers += program.layers
        places |= {p.name: p for p in program.places if p.role is not Role.INPUT or p.name not in made}
    return replace(
        programs[0],
        instructions=tuple(i for program in programs for i in program.instructions),
        provenance=tuple(provenance),
        layers=tuple(layers),
        places=tuple(places.values()),
        image=b"".join(program.image for program in programs),
        memory_words=sum(program.memory_words for program in programs),
        predicted_cycles=sum(program.predicted_cycles for program in programs),
    )
