"""Random instructions for benches of single units: those of random programs, shorter."""

import random
from collections.abc import Sequence

import numpy as np

from intloom.hw.spec.isa import Instruction, Kind
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES
from intloom.sim.random_programs.instructions import InstructionMaker
from intloom.sim.random_programs.program import legal_instruction
from intloom.sim.random_programs.words import words_of


class BenchInstructions:
    """Legal instructions that read the scratchpad's lower half and write its upper one, whatever other units do."""

    def __init__(
        self,
        rng: random.Random,
        params: HardwareParams,
        words: int = 60,
        exponentials: bool = True,
        islands: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._maker = InstructionMaker(rng, params, islands, words)
        # A VSOFTMAX becomes a VEXP as long as a part of the exponentials is not loaded.
        self._maker.exponentials.update(range(EXPONENTIAL_BYTES) if exponentials else ())
        self._half = params.scratch_words // 2

    def instruction(self, kind: Kind) -> Instruction:
        """One random instruction of `kind`."""
        while True:
            found = legal_instruction(self._maker, kind, self._apart)
            if found is not None:
                return found

    def _apart(self, i: Instruction) -> bool:
        words, none = words_of(i, self._maker.params), np.zeros(0, np.int64)
        reads, writes = (accesses.get("scratch", none) for accesses in (words.reads, words.writes))
        return bool((reads < self._half).all() and (writes >= self._half).all())
