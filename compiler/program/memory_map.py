"""Contents of a program's memories over time, as rectangles of words and instructions."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import Access, Memory, addresses, footprint, view
from intloom.compiler.program.memory import instruction_words
from intloom.compiler.program.program import Program, Role
from intloom.hw.spec.isa import Kind, LoadTarget

Words = NDArray[np.int32]


class Extent(NamedTuple):
    """Words `start` to `stop` of a memory hold `label` from instruction `first` to `last` (half-open, both)."""

    memory: Memory
    start: int
    stop: int
    first: int
    last: int
    label: str


def memory_size(program: Program, memory: Memory) -> int:
    """Words of a memory that a program can use."""
    params = program.params
    sizes = {
        Memory.DRAM: program.memory_words,
        Memory.SCRATCH: params.scratch_words,
        Memory.WEIGHT: params.weight_words,
    }
    return sizes[memory]


def _dram(program: Program) -> Iterator[Extent]:
    end = len(program.instructions)
    word = program.params.word_bytes
    regions = [
        (program.image_at, -(-len(program.image) // word), "constants"),
        (program.instructions_at, instruction_words(end, program.params), "instructions"),
        *((p.address, p.words, p.name) for p in program.tensors if p.role is not Role.SHARED),
    ]
    for start, words, label in regions:
        yield Extent(Memory.DRAM, start, start + words, 0, end, label)


def _shared(program: Program) -> Iterator[Extent]:
    """Tensors that share memory, from first store to last load, named by their stores."""
    live: dict[str, list[int]] = {}
    pinned = [(p.address, p.address + p.words) for p in program.tensors if p.role is not Role.SHARED]
    for index, (instruction, origin) in enumerate(zip(program.instructions, program.provenance, strict=True)):
        if instruction.kind not in (Kind.LOAD, Kind.STORE):
            continue
        dram = next(a for a in footprint(instruction, program.params) if a.memory is Memory.DRAM)
        if instruction.kind is Kind.STORE:
            start, stop, first, _ = live.get(origin.note, (dram.base, dram.last + 1, index, index))
            live[origin.note] = [min(start, dram.base), max(stop, dram.last + 1), first, index + 1]
        elif instruction.kind is Kind.LOAD:
            # Tensors that share memory overlap in addresses; the load belongs to the one that was stored last.
            names = [n for n, (start, stop, *_) in live.items() if start <= dram.base < stop]
            if names:
                live[max(names, key=lambda n: live[n][2])][3] = index + 1
    for name, (start, stop, first, last) in live.items():
        # Stores to pinned tensors are listed by `_dram` already.
        if not any(low < stop and start < high for low, high in pinned):
            yield Extent(Memory.DRAM, start, stop, first, last, name)


def _label(program: Program, index: int) -> str:
    origin = program.provenance[index]
    layer = program.layers[origin.layer].name if 0 <= origin.layer < len(program.layers) else ""
    instruction = program.instructions[index]
    if instruction.kind is Kind.LOAD:
        return f"{layer}: {'weights' if instruction['target'] == LoadTarget.WEIGHT else 'input'}"
    return f"{layer}: result"


def _are_distinct(access: Access) -> bool:
    """Whether no two of an access's words can be the same."""
    span = 1
    for count, step in reversed(access.dims):
        if count > 1 and step < span:
            return False
        span += (count - 1) * step
    return True


def _lifetimes(program: Program, memory: Memory) -> Iterator[Words]:
    """Words of a local memory, the instruction that wrote each, and the end of its last reader, as three rows.

    Words that nothing has written have -1 as writer.
    """
    size = memory_size(program, memory)
    state = np.stack([np.arange(size, dtype=np.int32), np.full(size, -1, np.int32), np.zeros(size, np.int32)])
    for index, instruction in enumerate(program.instructions):
        for access in footprint(instruction, program.params):
            if access.memory is not memory:
                continue
            wraps = access.last >= size
            key = addresses(access) % size if wraps else ...
            part = state if wraps else view(state, access, 3)
            if access.write:
                # A copy, since this instruction writes to the view.
                ended = np.array(part[:, key]).reshape(3, -1)
                distinct = not wraps and _are_distinct(access)
                yield ended if distinct else ended[:, np.unique(ended[0], return_index=True)[1]]
                part[1, key] = index
            part[2, key] = index + 1
    yield state


def _local(program: Program, memory: Memory) -> Iterator[Extent]:
    """Words of a local memory from their write to their last reader before the next one; neighbors alike together."""
    for lifetimes in _lifetimes(program, memory):
        written = lifetimes[:, lifetimes[1] >= 0]
        words, starts, ends = written[:, np.argsort(written[0])]
        cuts = (words[1:] != words[:-1] + 1) | (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
        at = 0
        for stop in (*(np.flatnonzero(cuts) + 1).tolist(), *([words.size] if words.size else [])):
            start, index = int(words[at]), int(starts[at])
            yield Extent(memory, start, start + stop - at, index, int(ends[at]), _label(program, index))
            at = stop


def _extents(program: Program, memory: Memory) -> Iterator[Extent]:
    if memory is not Memory.DRAM:
        yield from _local(program, memory)
        return
    yield from _dram(program)
    yield from _shared(program)


def memory_map(program: Program) -> tuple[Extent, ...]:
    """All extents of all memories, by memory, first instruction and address."""
    extents = (e for memory in Memory for e in _extents(program, memory))
    return tuple(sorted(extents, key=lambda e: (e.memory, e.first, e.start, e.stop)))


def peak_words(program: Program, memory: Memory) -> int:
    """The largest number of words of a memory at any instruction whose content is still valid and read later.

    Tensors in DRAM count as a whole, words of the other memories one by one.
    """
    if memory is Memory.DRAM:
        spans = [(e.first, e.last, e.stop - e.start) for e in _extents(program, memory)]
        starts, ends, words = np.array(spans).T
    else:
        every = np.concatenate(list(_lifetimes(program, memory)), axis=1)
        (starts, ends), words = every[1:, every[1] >= 0], None
    births, deaths = (np.bincount(at, words, len(program.instructions) + 1) for at in (starts, ends))
    return int((births - deaths).cumsum().max())
