"""Several programs of one model as one, for counting and showing: nobody runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from intloom.compiler.program.program import Layer, Program, Provenance, Role, TensorBuffer


def combined_program(programs: Sequence[Program]) -> Program:
    """One program as it is; of several the sum: all instructions, layers and places, in the order of the regions.

    A tensor that goes from one region to another stands at the place where it was made.
    """
    if len(programs) == 1:
        return programs[0]
    layers: list[Layer] = []
    provenance: list[Provenance] = []
    tensors: dict[str, TensorBuffer] = {}
    made = {p.name for program in programs for p in program.tensors if p.role is not Role.INPUT}
    for program in programs:
        first = len(layers)
        provenance += [replace(p, layer=p.layer + first if p.layer >= 0 else p.layer) for p in program.provenance]
        layers += program.layers
        tensors |= {p.name: p for p in program.tensors if p.role is not Role.INPUT or p.name not in made}
    return replace(
        programs[0],
        instructions=tuple(i for program in programs for i in program.instructions),
        provenance=tuple(provenance),
        layers=tuple(layers),
        tensors=tuple(tensors.values()),
        image=b"".join(program.image for program in programs),
        memory_words=sum(program.memory_words for program in programs),
        predicted_cycles=sum(program.predicted_cycles for program in programs),
    )
