"""A kept baseline: the Verilog and the workload of a commit, from its own sources."""

from pathlib import Path

import pytest

from intloom.sim.bench.baseline import read_baseline
from tools.baseline import keep


@pytest.mark.slow
def test_a_baseline_has_the_verilog_and_the_workload_of_its_commit(tmp_path: Path) -> None:
    keep("HEAD", "nano", tmp_path / "kept")
    kept = read_baseline(tmp_path / "kept")
    assert "module npu" in kept.verilog
    assert kept.workload is not None
    assert kept.workload.instructions > 0
    assert len(kept.workload.memory) == kept.workload.memory_words * kept.workload.word_bytes
    program = kept.workload.memory[kept.workload.program_word * kept.workload.word_bytes :]
    assert any(program[:64])
