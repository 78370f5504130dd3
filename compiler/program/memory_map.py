"""Contents of a program's memories over time, as rectangles of words and instructions."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import Access, Memory, addresses, footprint, view
from intloom.compiler.program.memory import instruction_words
from intloom.compiler.program.program import Program, Role
from intloom.hw.spec.isa import Kind, LoadTarget

Words = NDArray[Any]


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


def _pieces(program: Program, access: Access) -> list[tuple[int, int]]:
    """Half-open word ranges of a local access, with adjacent ranges merged; weight addresses wrap."""
    starts = [access.base]
    run = 1
    for count, step in access.dims:
        if count == 1:
            continue
        if step == 1:
            run = count
        else:
            starts = [s + k * step for s in starts for k in range(count)]
    size = program.params.weight_words if access.memory is Memory.WEIGHT else program.params.scratch_words
    pieces: list[tuple[int, int]] = []
    for start in sorted(s % size for s in starts):
        stop = start + run
        if stop > size:
            pieces.append((0, stop - size))
            stop = size
        if pieces and pieces[-1][1] >= start >= pieces[-1][0]:
            pieces[-1] = (pieces[-1][0], max(stop, pieces[-1][1]))
        else:
            pieces.append((start, stop))
    return pieces


def _label(program: Program, index: int) -> str:
    origin = program.provenance[index]
    layer = program.layers[origin.layer].name if 0 <= origin.layer < len(program.layers) else ""
    instruction = program.instructions[index]
    if instruction.kind is Kind.LOAD:
        return f"{layer}: {'weights' if instruction['target'] == LoadTarget.WEIGHT else 'input'}"
    return f"{layer}: result"


class _Live:
    """Extents of a local memory whose content is still valid: disjoint, in order of their addresses."""

    def __init__(self, program: Program, memory: Memory) -> None:
        self._program, self._memory = program, memory
        self._starts: list[int] = []
        self._extents: dict[int, Extent] = {}

    def _touched(self, start: int, stop: int) -> list[int]:
        """Starts of the extents that overlap these words."""
        low = bisect_right(self._starts, start)
        if low and self._extents[self._starts[low - 1]].stop > start:
            low -= 1
        return self._starts[low : bisect_left(self._starts, stop)]

    def read(self, index: int, start: int, stop: int) -> None:
        """Instruction `index` reads these words."""
        for key in self._touched(start, stop):
            self._extents[key] = self._extents[key]._replace(last=index + 1)

    def write(self, index: int, start: int, stop: int) -> Iterator[Extent]:
        """Instruction `index` writes these words: their previous extents end, the words around them stay valid."""
        for key in self._touched(start, stop):
            old = self._extents.pop(key)
            del self._starts[bisect_left(self._starts, key)]
            yield old._replace(start=max(key, start), stop=min(old.stop, stop))
            if key < start:
                self._add(old._replace(stop=start))
            if stop < old.stop:
                self._add(old._replace(start=stop))
        self._add(Extent(self._memory, start, stop, index, index + 1, _label(self._program, index)))

    def _add(self, extent: Extent) -> None:
        insort(self._starts, extent.start)
        self._extents[extent.start] = extent

    def rest(self) -> Iterable[Extent]:
        """The extents at the end of the program."""
        return self._extents.values()


def _local(program: Program) -> Iterator[Extent]:
    """Each write starts an extent, which ends with its last reader or the next write to the same words."""
    live = {memory: _Live(program, memory) for memory in (Memory.SCRATCH, Memory.WEIGHT)}
    for index, instruction in enumerate(program.instructions):
        for access in footprint(instruction, program.params):
            if access.memory is Memory.DRAM:
                continue
            for start, stop in _pieces(program, access):
                if access.write:
                    yield from live[access.memory].write(index, start, stop)
                else:
                    live[access.memory].read(index, start, stop)
    for extents in live.values():
        yield from extents.rest()


def memory_map(program: Program) -> tuple[Extent, ...]:
    """All extents of all memories, by memory, first instruction and address."""
    extents = [*_dram(program), *_shared(program), *_local(program)]
    return tuple(sorted(extents, key=lambda e: (e.memory, e.first, e.start, e.stop)))


def peak_words(program: Program, memory: Memory) -> int:
    """The largest number of words of a memory at any instruction whose content is still valid and read later.

    Tensors in DRAM count as a whole, words of the other memories one by one.
    """
    if memory is Memory.DRAM:
        return _peak_of_extents((*_dram(program), *_shared(program)))
    return _peak_of_words(program, memory)


def _peak_of_words(program: Program, memory: Memory) -> int:
    size = memory_size(program, memory)
    # Without an extent for each piece of a strided access, this takes a tenth of the time of `memory_map`.
    written, read = np.zeros(size, np.int32), np.zeros(size, np.int32)
    changes = np.zeros(len(program.instructions) + 2, np.int64)
    for index, instruction in enumerate(program.instructions, 1):
        for access in footprint(instruction, program.params):
            if access.memory is not memory:
                continue
            if access.write:
                _count(changes, _words(written, access), _words(read, access))
                _set(written, access, index)
            _set(read, access, index)
    _count(changes, written, read)
    return int(np.cumsum(changes).max())


def _count(changes: Words, written: Words, read: Words) -> None:
    """Add lifetimes of words from their write to their last access; 0 stands for none."""
    valid = written > 0
    np.add.at(changes, written[valid], 1)
    np.subtract.at(changes, read[valid] + 1, 1)


def _words(array: Words, access: Access) -> Words:
    """Values of an access's words; addresses wrap."""
    words: Words = array[addresses(access) % array.size] if access.last >= array.size else view(array, access)
    return words


def _set(array: Words, access: Access, value: int) -> None:
    if access.last >= array.size:
        array[addresses(access) % array.size] = value
    else:
        view(array, access)[...] = value


def _peak_of_extents(extents: Iterable[Extent]) -> int:
    changes: dict[int, int] = {}
    for extent in extents:
        words = extent.stop - extent.start
        changes[extent.first] = changes.get(extent.first, 0) + words
        changes[extent.last] = changes.get(extent.last, 0) - words
    peak = now = 0
    for index in sorted(changes):
        now += changes[index]
        peak = max(peak, now)
    return peak
