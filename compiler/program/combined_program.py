"""The programs of all regions of a model combined into one, for statistics and display only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from intloom.compiler.program.program import Layer, Program, Provenance, Role, TensorBuffer


def combined_program(programs: Sequence[Program]) -> Program:
    """The instructions, layers and tensors of all programs, in the order of the regions; a single program is unchanged.

    A tensor that one region passes to another appears once, in the region that produces it.
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
        residences=tuple(r for program in programs for r in program.residences),
        # Their instructions are renumbered; comparisons use the programs of the regions.
        local_tensors=(),
        local_results=(),
        image=b"".join(program.image for program in programs),
        memory_words=sum(program.memory_words for program in programs),
        predicted_cycles=sum(program.predicted_cycles for program in programs),
    )
