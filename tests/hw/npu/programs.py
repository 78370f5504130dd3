"""Random programs of moves, with a model of what they do to memory."""

import random
from dataclasses import dataclass, field

from intloom.hw.dma.front_end import MoveFrontEnd
from intloom.hw.spec import isa
from intloom.hw.spec.params import HardwareParams


@dataclass
class MoveModel:
    """Memory and scratchpad as lists of words, changed by moves in program order."""

    memory: list[bytes]
    scratch: dict[int, bytes] = field(default_factory=dict)

    def run(self, move: isa.Instruction) -> None:
        """Do what `move` does."""
        for dram, local in MoveFrontEnd.model(move):
            if move.kind is isa.Kind.LOAD:
                self.scratch[local] = self.memory[dram]
            else:
                self.memory[dram] = self.scratch[local]


def random_round_trip(
    rng: random.Random, params: HardwareParams, source: range, target: range, done: dict[str, int]
) -> list[isa.Instruction]:
    """A LOAD of a random box from `source` and a STORE of it to `target`, of words in memory."""
    while True:
        n0, n1, n2 = rng.choice([1, 2, 7, 16, 40, 70]), rng.randint(1, 5), rng.randint(1, 3)
        words = n0 * n1 * n2
        s1 = rng.choice([n0, n0 + rng.randint(0, 9)])
        s2 = rng.choice([s1 * n1, s1 * n1 + rng.randint(0, 20)])
        span = (n1 - 1) * s1 + (n2 - 1) * s2 + n0
        if span <= min(len(source), len(target)) and span <= params.scratch_words // 2:
            break
    local = rng.randrange(params.scratch_words - span)
    box = {"n0": n0, "n1": n1, "n2": n2}
    packed = {"local_s1": n0, "local_s2": n0 * n1}
    spread = {"local_s1": s1, "local_s2": s2}
    inner = rng.choice([packed, spread])
    load = isa.make(
        "LOAD", dram=rng.randrange(source.start, source.stop - span + 1), local=local, dram_s1=s1, dram_s2=s2,
        wait_store=done["STORE"], **box, **inner,
    )  # fmt: skip
    outer = rng.choice([(n0, n0 * n1), (s1, s2)])
    store = isa.make(
        "STORE", dram=rng.randrange(target.start, target.stop - span + 1), local=local, dram_s1=outer[0],
        dram_s2=outer[1], wait_load=done["LOAD"] + 1, **box, **inner,
    )  # fmt: skip
    assert words
    done["LOAD"] += 1
    done["STORE"] += 1
    return [load, store]
