"""Jobs for the stand-in accelerator, on which benches are tried because it builds in seconds."""

from pathlib import Path

import numpy as np

from intloom.sim.rtl.job import Job, MemorySettings, RunFiles

VERILOG = Path(__file__).with_name("standin.v").read_text()
WORD_BYTES = 4
FINGERPRINT = 0x12345678
BEATS = 4


def copy_job(words: int, **changes) -> Job:
    """Copy `words` words to the words directly after them."""
    settings = {
        "word_bytes": WORD_BYTES,
        "memory_words": 2 * words,
        "program_word": 0,
        "instructions": words,
        "limit": 200 * words + 5000,
    }
    return Job(**{**settings, **changes})


def fill(files: RunFiles, words: int, seed: int = 0) -> np.ndarray:
    """Random words followed by zeros; returns the random part."""
    data = np.random.default_rng(seed).integers(0, 256, words * WORD_BYTES, dtype=np.uint8)
    np.concatenate([data, np.zeros_like(data)]).tofile(files.memory)
    return data


def copied(files: RunFiles, words: int) -> np.ndarray:
    """The words at the target of the copy."""
    return np.fromfile(files.memory, np.uint8)[words * WORD_BYTES :]


def slow_memory(seed: int) -> MemorySettings:
    """A memory with random delays."""
    random = np.random.default_rng(seed)
    return MemorySettings(
        read_latency=int(random.integers(0, 60)),
        write_latency=int(random.integers(0, 60)),
        bandwidth=float(random.choice([0.0, 0.3, 1.0])),
        stall_permille=int(random.integers(0, 700)),
        outstanding=int(random.integers(1, 8)),
        seed=seed,
    )
