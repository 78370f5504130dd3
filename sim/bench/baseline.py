"""An earlier version of the accelerator, to compare simulation speed with."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from intloom.common.errors import UsageError
from intloom.sim.rtl.job import Job, RunFiles

VERILOG, MEMORY, WORKLOAD = "npu.v", "memory.bin", "workload.json"
"""Files of a baseline folder, which `python -m tools.baseline` writes."""


@dataclass(frozen=True)
class Workload:
    """The dense workload in the encoding of the earlier version: its memory, and what the registers are set to."""

    memory: bytes
    word_bytes: int
    memory_words: int
    program_word: int
    instructions: int

    def write_memory(self, files: RunFiles) -> None:
        """Write the memory before the run."""
        files.memory.write_bytes(self.memory)

    def job(self, job: Job) -> Job:
        """`job` with this workload."""
        return replace(
            job,
            word_bytes=self.word_bytes,
            memory_words=self.memory_words,
            program_word=self.program_word,
            instructions=self.instructions,
        )


@dataclass(frozen=True)
class Baseline:
    """Verilog of an earlier version, and its workload if its instructions are not those of this version."""

    verilog: str
    workload: Workload | None = None


def read_baseline(path: Path) -> Baseline:
    """The baseline in a Verilog file, or in a folder that `python -m tools.baseline` wrote."""
    try:
        if not path.is_dir():
            return Baseline(path.read_text(encoding="utf-8"))
        numbers = json.loads((path / WORKLOAD).read_text(encoding="utf-8"))
        workload = Workload((path / MEMORY).read_bytes(), **numbers)
        return Baseline((path / VERILOG).read_text(encoding="utf-8"), workload)
    except OSError as error:
        raise UsageError(
            f"--baseline must be a readable Verilog file or a folder of tools.baseline: {path}: {error.strerror}"
        ) from None
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path / WORKLOAD} must be as tools.baseline writes it: {error}; write it again") from None
