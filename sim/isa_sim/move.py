"""LOAD and STORE."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.compiler.program.word_code import decode_words
from intloom.hw.spec.formats import memory_run
from intloom.hw.spec.isa import DRAM_BITS, Instruction, Kind, LoadTarget
from intloom.sim.isa_sim.machine import Machine, Words
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


def _starts(i: Instruction, base: str, name: str) -> NDArray[np.int64]:
    """First words of all runs, before they wrap: [plane, run]."""
    planes = np.arange(i["n2"], dtype=np.int64)[:, None] * i[f"{name}_s2"]
    return i[base] + planes + np.arange(i["n1"], dtype=np.int64) * i[f"{name}_s1"]


def _runs(machine: Machine, i: Instruction) -> Iterator[tuple[int, int]]:
    """Memory offset and local address of each run, in order; steps may wrap, so that they can be negative."""
    memory_words = (1 << machine.params.axi_addr_bits) // machine.params.word_bytes
    offsets = _starts(i, "dram", "dram") % min(1 << DRAM_BITS, memory_words)
    addresses = _starts(i, "local", "local") % ADDRESS_SPACE
    return zip(offsets.reshape(-1).tolist(), addresses.reshape(-1).tolist(), strict=True)


@executes(Kind.LOAD)
def load(machine: Machine, instruction: Instruction) -> None:
    """Copy runs of words from memory; weight memory wraps."""
    i = instruction
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
