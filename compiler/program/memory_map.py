"""Contents of a program's memories over time, as rectangles of words and instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from intloom.compiler.program.footprint import Access, Memory, footprint
from intloom.compiler.program.memory import instruction_words
from intloom.compiler.program.program import Program, Role
from intloom.hw.spec.isa import Kind, Target


@dataclass(frozen=True)
class Extent:
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
            found = [n for n, (start, stop, *_) in live.items() if start <= dram.base < stop]
            if found:
                live[max(found, key=lambda n: live[n][2])][3] = index + 1
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
        return f"{layer}: {'weights' if instruction['target'] == Target.WEIGHT else 'input'}"
    return f"{layer}: result"


class _Live:
    """Extents of the local memories whose content is still valid."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._spans: dict[tuple[Memory, int, int], list[int]] = {}

    def _touched(self, memory: Memory, start: int, stop: int) -> list[tuple[Memory, int, int]]:
        return [k for k in self._spans if k[0] is memory and k[1] < stop and start < k[2]]

    def read(self, index: int, memory: Memory, start: int, stop: int) -> None:
        """Instruction `index` reads these words."""
        for key in self._touched(memory, start, stop):
            self._spans[key][1] = index + 1

    def write(self, index: int, memory: Memory, start: int, stop: int) -> Iterator[Extent]:
        """Instruction `index` writes these words: their previous extents end, the words around them stay valid."""
        for key in self._touched(memory, start, stop):
            first, last = self._spans.pop(key)
            yield self._extent((memory, max(key[1], start), min(key[2], stop)), first, last)
            if key[1] < start:
                self._spans[memory, key[1], start] = [first, last]
            if stop < key[2]:
                self._spans[memory, stop, key[2]] = [first, last]
        self._spans[memory, start, stop] = [index, index + 1]

    def rest(self) -> Iterator[Extent]:
        """The extents at the end of the program."""
        for key, (first, last) in self._spans.items():
            yield self._extent(key, first, last)

    def _extent(self, key: tuple[Memory, int, int], first: int, last: int) -> Extent:
        return Extent(*key, first, last, _label(self._program, first))


def _local(program: Program) -> Iterator[Extent]:
    """Each write starts an extent, which ends with its last reader or the next write to the same words."""
    live = _Live(program)
    for index, instruction in enumerate(program.instructions):
        for access in footprint(instruction, program.params):
            if access.memory is Memory.DRAM:
                continue
            for start, stop in _pieces(program, access):
                if access.write:
                    yield from live.write(index, access.memory, start, stop)
                else:
                    live.read(index, access.memory, start, stop)
    yield from live.rest()


def memory_map(program: Program) -> tuple[Extent, ...]:
    """All extents of all memories, by memory, first instruction and address."""
    extents = [*_dram(program), *_shared(program), *_local(program)]
    return tuple(sorted(extents, key=lambda e: (e.memory, e.first, e.start, e.stop)))


def peak_words(program: Program, memory: Memory) -> int:
    """The largest number of live words of a memory at any instruction."""
    return peak_of(e for e in memory_map(program) if e.memory is memory)


def peak_of(extents: Iterable[Extent]) -> int:
    """The largest number of words of one memory's extents at any instruction."""
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
