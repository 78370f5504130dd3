"""Random legal CONV instructions that fit a small scratchpad, with the constants they need."""

import random
from dataclasses import dataclass

import numpy as np

from intloom.hw.spec.isa import Instruction, Kind
from intloom.hw.spec.params import HardwareParams
from intloom.sim.random_programs.program import constant_loads, constants
from tests.hw.instructions import BenchInstructions

SCRATCH_WORDS = 4096


@dataclass
class Case:
    """A program and its memories: inputs and residuals in the scratchpad's lower half, outputs in the upper one."""

    program: list[Instruction]
    scratch: np.ndarray
    weights: np.ndarray


def random_case(seed: int, p: HardwareParams, length: int, *, pixels: bool = False) -> Case:
    """A program of so many instructions; with `pixels`, each makes one pixel, so that many are in flight."""
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    scratch = noise.integers(-128, 128, SCRATCH_WORDS * p.rows, dtype=np.int8)
    weights = noise.integers(-128, 128, (p.weight_words, p.rows), dtype=np.int8)
    records = np.frombuffer(constants(rng, p), np.int8).reshape(-1, p.rows)
    maker = BenchInstructions(rng, p.replace(scratch_kib=SCRATCH_WORDS * p.word_bytes // 1024), words=200)
    least = {"out_h": 1, "out_w": 1, "out_blocks": 1} if pixels else {}
    program = [maker.instruction(Kind.CONV).with_fields(**least) for _ in range(length)]
    for conv in program:
        for load in (step.instruction for step in constant_loads(rng, conv, p, 0)):
            at = (load["local"] + np.arange(load["n0"])) % p.weight_words
            weights[at] = records[load["dram"] :][: load["n0"]]
    return Case(program, scratch, weights.reshape(-1))
