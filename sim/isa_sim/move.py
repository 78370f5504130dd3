"""LOAD and STORE."""

from __future__ import annotations

from intloom.hw.spec.isa import Instruction, Kind, Target
from intloom.sim.isa_sim.machine import Machine, Words
from intloom.sim.isa_sim.registry import executes


def _copy(words: Words, local: Words, target: int, *, wraps: bool) -> None:
    # Only the weight memory is a ring; a scratchpad access beyond the end is an error that the checker reports.
    if wraps:
        target %= len(local)
    head = min(len(words), len(local) - target)
    local[target : target + head] = words[:head]
    if head < len(words):
        local[: len(words) - head] = words[head:]


@executes(Kind.LOAD)
def load(machine: Machine, instruction: Instruction) -> None:
    """Copy runs of words from memory; weight memory wraps."""
    i = instruction
    local = machine.weights if i["target"] == Target.WEIGHT else machine.scratch
    for plane in range(i["n2"]):
        for run in range(i["n1"]):
            source = i["dram"] + plane * i["dram_s2"] + run * i["dram_s1"]
            target = i["local"] + plane * i["local_s2"] + run * i["local_s1"]
            _copy(machine.dram[source : source + i["n0"]], local, target, wraps=local is machine.weights)


@executes(Kind.STORE)
def store(machine: Machine, instruction: Instruction) -> None:
    """Copy runs of words to memory."""
    i = instruction
    for plane in range(i["n2"]):
        for run in range(i["n1"]):
            source = i["local"] + plane * i["local_s2"] + run * i["local_s1"]
            target = i["dram"] + plane * i["dram_s2"] + run * i["dram_s1"]
            machine.dram[target : target + i["n0"]] = machine.scratch[source : source + i["n0"]]
