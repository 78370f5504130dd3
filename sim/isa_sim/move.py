"""LOAD and STORE."""

from collections.abc import Iterator

import numpy as np

from intloom.common.errors import ProgramError
from intloom.compiler.program.constant_check import crc_of_load, run_offsets
from intloom.compiler.program.word_code import decode_words
from intloom.hw.spec.formats import memory_run
from intloom.hw.spec.isa import Instruction, Kind, LoadTarget
from intloom.sim.isa_sim.machine import Machine, Words, grid
from intloom.sim.isa_sim.registry import executes


def _copy(words: Words, local: Words, target: int, *, wraps: bool) -> None:
    # Only the weight memory is a ring; a scratchpad access beyond the end is an error that the checker reports.
    if wraps:
        # Of a run that is longer than the ring, the last words stay.
        overwritten = max(0, len(words) - len(local))
        words, target = words[overwritten:], (target + overwritten) % len(local)
    head = min(len(words), len(local) - target)
    local[target : target + head] = words[:head]
    if head < len(words):
        local[: len(words) - head] = words[head:]


def _runs(machine: Machine, i: Instruction) -> Iterator[tuple[int, int]]:
    """Memory offset and local address of each run, in order."""
    addresses = grid(i["local"], (i["n2"], i["local_s2"]), (i["n1"], i["local_s1"]))
    return zip(run_offsets(i, machine.params), addresses.reshape(-1).tolist(), strict=True)


@executes(Kind.LOAD)
def load(machine: Machine, instruction: Instruction) -> None:
    """Copy runs of words from memory; weight memory wraps. ProgramError if they do not match the CRC."""
    i = instruction
    if i["crc"] and crc_of_load(i, machine.dram, machine.params) != i["crc"]:
        raise ProgramError("the words that a LOAD reads must match its CRC, but they do not: compile the model again")
    local = machine.weights if i["target"] == LoadTarget.WEIGHT else machine.scratch
    for source, target in _runs(machine, i):
        words = machine.dram[source : source + memory_run(i)]
        if i["coded"]:
            rows = machine.params.rows
            words = np.frombuffer(decode_words(words.tobytes(), i["n0"], rows), np.int8).reshape(-1, rows)
        _copy(words, local, target, wraps=local is machine.weights)


@executes(Kind.STORE)
def store(machine: Machine, instruction: Instruction) -> None:
    """Copy runs of words to memory."""
    i = instruction
    for target, source in _runs(machine, i):
        machine.dram[target : target + i["n0"]] = machine.scratch[source : source + i["n0"]]
