"""Result words for the instructions of an extreme program."""

from intloom.hw.spec.isa import Instruction, Kind, make
from intloom.sim.random_programs.words import words_of
from tests.sim.random_programs import extremes as x

LEGAL_BITS = (x.WIDE.scratch_words - 1).bit_length()
"""Address bits of the largest scratchpad."""
_ROWS = 65_300
"""Result words of instructions whose rows are 2^15 words apart; below lie operands, above results."""
_FIRST_RESULT = 99_000
HIGH = (1 << LEGAL_BITS) - 600
"""Words at the end of the scratchpad, for addresses with their highest bit."""


class Results:
    """Gives each instruction result words of its own, so that no later one overwrites what it wrote."""

    def __init__(self) -> None:
        self._next = _FIRST_RESULT
        self._rows = _ROWS
        self._high = HIGH
        self._target = {x.LOW_TARGET: x.LOW_TARGET, x.HIGH_TARGET: x.HIGH_TARGET}

    def make(self, kind: Kind, margin: int = 0, **fields: int) -> Instruction:
        """An instruction with a result in the next words; `margin` of them before its first address."""
        name = "local" if kind is Kind.LOAD else "out_base"
        if kind is Kind.STORE or fields.get("target") or name in fields:
            return make(kind, **fields)
        made = make(kind, **{name: self._next + margin}, **fields)
        self._next = int(words_of(made, x.WIDE).written.max()) + 1
        assert self._next < HIGH
        return made

    def rows(self) -> int:
        """A first address for rows 2^15 words apart."""
        self._rows += 8
        return self._rows

    def high(self, words: int = 8) -> int:
        """An address with the highest bit."""
        self._high += words
        return self._high

    def target(self, first: int, words: int = 8) -> int:
        """Memory words for a store."""
        self._target[first] += words
        return self._target[first] - words
