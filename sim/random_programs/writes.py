"""Compares what each instruction wrote, byte by byte, with what the instruction simulator writes for it.

Memory at the end of a program shows no wrong result that a later instruction overwrites. Every port writes in program
order, so the log of a port is divided by the number of bytes that each instruction must write.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.word_code import decode_words
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import AccessPattern, Instruction, Kind, LoadTarget, TableUse
from intloom.sim.compare.expected_writes import writer_of
from intloom.sim.isa_sim.machine import Machine
from intloom.sim.isa_sim.registry import SEMANTICS
from intloom.sim.random_programs.words import words_of
from intloom.sim.rtl.write_log import Stored, Writer, byte_masks

Bytes = NDArray[np.uint8]
Bits = NDArray[np.bool_]
Addresses = NDArray[np.int64]


@dataclass(frozen=True)
class _Writes:
    """Written words, and the value and presence of each of their bytes."""

    words: Addresses
    data: Bytes
    mask: Bits


class _Port:
    """The writes of one port, taken instruction by instruction."""

    def __init__(self, records: NDArray[np.void], first_word: int, width: int) -> None:
        high = records["word_high"].astype(np.int64) << 32
        self._words = (high | records["word"]) - first_word
        self._data: Bytes = records["data"]
        self._mask = byte_masks(records, width)
        self._bytes = np.cumsum(self._mask.sum(axis=1))
        self._at = 0

    def take(self, count: int) -> _Writes:
        """The next writes, of so many bytes."""
        taken = int(self._bytes[self._at - 1]) if self._at else 0
        stop = int(np.searchsorted(self._bytes, taken + count)) + 1
        part = slice(self._at, min(stop, len(self._words)))
        self._at = part.stop
        return _Writes(self._words[part], self._data[part], self._mask[part])

    def rest(self) -> Addresses:
        """Words of the writes that no instruction took."""
        return self._words[self._at :]


class WriteComparison:
    """Executes instructions on the instruction simulator, and compares what each one writes with the log of an RTL run.

    Parameters
    ----------
    machine
        The instruction simulator's state.
    log
        Writes, and contents at the end, as the bare loop records them.
    first_word
        Word of the recorded memory that has offset 0.
    """

    def __init__(self, machine: Machine, log: NDArray[np.void], first_word: int) -> None:
        self._machine = machine
        width = machine.params.word_bytes
        self._stored: dict[Stored, Bytes] = {s: log["data"][log["writer"] == s] for s in Stored}
        self._ports = {w: _Port(log[log["writer"] == w], first_word if w is Writer.STORE else 0, width) for w in Writer}
        self._mac_tables: list[Bytes] = []
        self._loaded: set[tuple[Kind, int]] = set()

    def execute(self, instruction: Instruction) -> str:
        """Execute an instruction; the first byte that the RTL wrote otherwise, or an empty text."""
        i, machine = instruction, self._machine
        writer = writer_of(i)
        if writer is None:
            SEMANTICS[i.kind](machine, i)
            self._loaded.add((i.kind, i["part"] if i.kind is Kind.VEXP else 0))
            return ""
        if i.spec.pattern is AccessPattern.MOVE:
            expected = _move(machine, i)
            written = self._ports[writer].take(expected.mask.size)
            if writer is Writer.LOAD_WEIGHT:
                written = _Writes(written.words % machine.params.weight_words, written.data, written.mask)
        else:
            expected = _result(machine, i)
            written = _by_word(self._ports[writer].take(int(expected.mask.sum())))
        if i.kind is Kind.CONV and i["table"] == TableUse.LOAD:
            self._mac_tables.append(machine.mac_table.view(np.uint8).copy())
        return _difference(expected, written, _MEMORIES[writer])

    def finish(self) -> str:
        """After the last instruction: writes that no instruction makes, then the weight memory and the tables."""
        for writer, port in self._ports.items():
            rest = port.rest()
            if len(rest):
                return f"{len(rest)} writes too many by {writer.name}, the first one to word {int(rest[0]):#x}"
        weights = self._stored[Stored.WEIGHTS]
        written = _Writes(np.arange(len(weights)), weights, np.ones(weights.shape, bool))
        expected = _Writes(written.words, self._machine.weights.view(np.uint8), written.mask)
        return _difference(expected, written, "weight memory at the end:") or next(self._wrong_tables(), "")

    def _wrong_tables(self) -> Iterator[str]:
        machine, size = self._machine, TABLE_BYTES
        tables = {s: self._stored[s] for s in Stored if s is not Stored.WEIGHTS}
        tables = {s: words.reshape(-1, size, words.shape[1]) for s, words in tables.items()}
        # Two sets in turn: the first table is in set 1. A lane's memory has both sets.
        for number in range(max(1, len(self._mac_tables) - 1), len(self._mac_tables) + 1):
            copies = tables[Stored.MAC_TABLE][number % 2 :: 2, :, 0]
            yield from _wrong_table(f"table {number} of the MAC unit", copies, self._mac_tables[number - 1])
        if (Kind.VTABLE, 0) in self._loaded:
            yield from _wrong_table(
                "table of the vector unit", tables[Stored.VECTOR_TABLE][:, :, 0], machine.vector_table.view(np.uint8)
            )
        for part in (part for kind, part in sorted(self._loaded) if kind is Kind.VEXP):
            copies = tables[Stored.EXPONENTIALS][:, :, part]
            yield from _wrong_table(f"byte {part} of the exponentials", copies, machine.exponentials[part])


def _wrong_table(name: str, copies: Bytes, wanted: Bytes) -> Iterator[str]:
    if not len(copies):
        yield f"{name}: not recorded"
    for copy, at in np.argwhere(copies != wanted)[:1]:
        yield f"{name}, copy {copy}, at the end: entry {at} is {copies[copy, at]} instead of {wanted[at]}"


_MEMORIES = {
    Writer.LOAD_SCRATCH: "scratchpad",
    Writer.LOAD_WEIGHT: "weight memory",
    Writer.MAC: "scratchpad",
    Writer.VEC: "scratchpad",
    Writer.STORE: "memory",
}


def _move(machine: Machine, i: Instruction) -> _Writes:
    """Execute a move: its writes in order, in which a word may occur several times."""
    words = words_of(i, machine.params)
    if i.kind is Kind.STORE:
        source, target = machine.scratch[words.reads["scratch"]], machine.dram
    else:
        source = machine.dram[words.reads["dram"]]
        if i["coded"]:
            rows = machine.params.rows
            runs = (decode_words(run.tobytes(), i["n0"], rows) for run in np.split(source, i["n1"] * i["n2"]))
            source = np.frombuffer(bytearray().join(runs), np.int8).reshape(-1, rows)
        target = machine.weights if i["target"] == LoadTarget.WEIGHT else machine.scratch
    SEMANTICS[i.kind](machine, i)
    # The last write of each word is the instruction simulator's.
    last = len(words.written) - 1 - np.unique(words.written[::-1], return_index=True)[1]
    source[last] = target[words.written[last]]
    return _Writes(words.written, source.view(np.uint8), np.ones(source.shape, bool))


def _result(machine: Machine, i: Instruction) -> _Writes:
    """Execute an instruction that computes: its written words, sorted.

    The instruction is executed twice, on words that differ in every bit: bytes that are then equal were written.
    """
    words = np.unique(words_of(i, machine.params).written)
    before, sums = machine.scratch[words], machine.sums
    SEMANTICS[i.kind](machine, i)
    once = machine.scratch[words]
    machine.scratch[words], machine.sums = ~before, sums
    SEMANTICS[i.kind](machine, i)
    mask: Bits = once == machine.scratch[words]
    machine.scratch[words] = once
    return _Writes(words, once.view(np.uint8), mask)


def _by_word(writes: _Writes) -> _Writes:
    """Writes of parts of words as one write of each word; a byte that is written twice stays a write of its own."""
    order = np.argsort(writes.words, kind="stable")
    words, data, mask = writes.words[order], writes.data[order], writes.mask[order]
    found, first = np.unique(words, return_index=True)
    if not len(found) or (np.add.reduceat(mask, first, axis=0, dtype=np.int64) > 1).any():
        return _Writes(words, data, mask)
    joined = np.add.reduceat(np.where(mask, data, 0), first, axis=0, dtype=np.uint8)
    return _Writes(found, joined, np.logical_or.reduceat(mask, first, axis=0))


def _difference(expected: _Writes, found: _Writes, memory: str) -> str:
    """The first difference, in the order of the writes or of the addresses."""
    count = min(len(expected.words), len(found.words))
    other = expected.words[:count] != found.words[:count]
    masks = expected.mask[:count] != found.mask[:count]
    values = expected.mask[:count] & (expected.data[:count] != found.data[:count])
    wrong = np.flatnonzero(other | (masks | values).any(axis=1))
    if wrong.size:
        at = int(wrong[0])
        if other[at]:
            return f"{memory} word {int(found.words[at]):#x} is written instead of word {int(expected.words[at]):#x}"
        byte = int(np.flatnonzero(masks[at] | values[at])[0])
        return f"{memory} word {int(found.words[at]):#x}, byte {byte}: " + _byte(found, at, byte, expected)
    if len(found.words) == len(expected.words):
        return ""
    side, text = (found, "written too much") if len(found.words) > count else (expected, "not written")
    return f"{memory} word {int(side.words[count]):#x} is {text}"


def _byte(found: _Writes, at: int, byte: int, expected: _Writes) -> str:
    if found.mask[at, byte] != expected.mask[at, byte]:
        return "written, but must not be" if found.mask[at, byte] else "not written"
    return f"{int(found.data[at, byte])} instead of {int(expected.data[at, byte])}"
