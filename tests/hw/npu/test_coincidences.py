"""Events that meet in one cycle, in every state of every FSM of the accelerator."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.hw.npu.coincidences import wanted_points
from tests.hw.npu.disturbed import MOST_RUNS, ROUNDS, run


@pytest.mark.slow
def test_all_events_meet_in_all_states(tmp_path: Path) -> None:
    """Each disturbed run is followed by a right program; points that are excluded are not reached."""
    wanted = set(wanted_points())
    seen: Counter[str] = Counter()
    for seed in range(1, MOST_RUNS + 1):
        seen += run(tmp_path, seed, ROUNDS)[0]
        if wanted <= seen.keys():
            break
    assert not sorted(wanted - seen.keys())
    assert not sorted(seen.keys() - wanted), "an excluded point was reached: the reason of its exclusion is wrong"


@pytest.mark.slow
def test_programs_run_after_any_events(tmp_path: Path, seed: int) -> None:
    """As above with the seed of the run. No output depends, while it is valid, on registers before the reset."""
    digests = {run(tmp_path, seed, ROUNDS // 5, start_seed)[1] for start_seed in (1, 2 + seed % 1000)}
    assert len(digests) == 1
