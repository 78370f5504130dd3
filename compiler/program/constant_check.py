"""CRCs of the loads that read constants; `intloom.hw.spec.constant_check` defines them."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from intloom.hw.spec.constant_check import block_crc
from intloom.hw.spec.formats import memory_run
from intloom.hw.spec.isa import DRAM_BITS, Instruction, Kind
from intloom.hw.spec.params import HardwareParams


def run_offsets(load: Instruction, params: HardwareParams) -> list[int]:
    """The first word in memory of each run of a LOAD or STORE, in order; steps wrap, so that they can be negative."""
    memory_words = (1 << params.axi_addr_bits) // params.word_bytes
    planes = np.arange(load["n2"], dtype=np.int64)[:, None] * load["dram_s2"]
    starts = load["dram"] + planes + np.arange(load["n1"], dtype=np.int64) * load["dram_s1"]
    offsets: list[int] = (starts % min(1 << DRAM_BITS, memory_words)).reshape(-1).tolist()
    return offsets


def crc_of_load(load: Instruction, memory: NDArray[np.int8], params: HardwareParams) -> int:
    """The CRC of the words that a LOAD reads from `memory`: [word, byte]."""
    return _crc_of_runs(memory, run_offsets(load, params), memory_run(load))


def _crc_of_runs(memory: NDArray[np.int8], offsets: Iterable[int], words: int) -> int:
    return block_crc(b"".join(memory[at : at + words].tobytes() for at in offsets))


def add_crcs(
    instructions: Iterable[Instruction], constants: bytes, first: int, params: HardwareParams
) -> Iterator[Instruction]:
    """The instructions, with the CRC of each LOAD that reads nothing but `constants`, which begin at word `first`.

    Hardware without `constant_check` has no CRCs.
    """
    memory = np.frombuffer(constants.ljust(-(-len(constants) // params.word_bytes) * params.word_bytes, b"\0"), np.int8)
    words = memory.reshape(-1, params.word_bytes)
    for i in instructions:
        if i.kind is Kind.LOAD and params.constant_check:
            at, run = [offset - first for offset in run_offsets(i, params)], memory_run(i)
            if min(at) >= 0 and max(at) + run <= len(words):
                i = i.with_fields(crc=_crc_of_runs(words, at, run))
        yield i
