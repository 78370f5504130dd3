"""The faults of one component, and which of them its bench finds."""

import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tools.mutate.bench import Bench, Outcome
from tools.mutate.equivalence import equivalent
from tools.mutate.score import Score
from tools.mutate.sites import Mutant, draw

_MIN_FAULTS = 10
"""A component gets so many more even if they take longer than the limit: with the slowest bench, 120 take 12 nights."""


@dataclass(frozen=True)
class Sample:
    """Which faults are planted in a component: the next ones of its order, which its seed gives."""

    count: int
    """How many a component gets, those of earlier calls included."""
    seconds: float = math.inf
    """So long after the run without a fault no further one is planted: those before are a sample too, since they are in
    random order."""


def run(tests: Sequence[str], sample: Sample, folder: Path, before: Score) -> Score:
    """Plant faults in one component, after those of `before`, and print those that its bench does not find."""
    component, started = before.component, time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    bench = Bench(component, tests, folder)
    bench.measure()
    planting = time.monotonic()
    drawn = draw(bench.extents(), sample.count, before.seed)
    mutants = drawn[before.faults :]
    outcomes: list[Outcome] = []
    for mutant in mutants:
        if len(outcomes) >= _MIN_FAULTS and time.monotonic() - planting > sample.seconds:
            mutants = mutants[: len(outcomes)]
            break
        outcomes.append(bench.run(mutant))
        # After each fault, so that progress and the first holes can be read while the others are planted.
        write_outcomes(folder / "outcomes.txt", mutants[: len(outcomes)], outcomes)
    survivors = [m for m, outcome in zip(mutants, outcomes, strict=True) if not outcome.found]
    # Listed ones too: a proof is worth more than a reason.
    same = equivalent(bench, survivors, folder)
    others = tuple((m.source, m.fault) for m, proved in zip(survivors, same, strict=True) if not proved)
    score = replace(
        before,
        faults=before.faults + len(mutants),
        found=before.found + len(mutants) - len(survivors),
        harmless=before.harmless + sum(same),
        survivors=before.survivors + others,
        asked=sample.count if before.faults + len(mutants) == len(drawn) else before.asked,
        seconds=before.seconds + round(time.monotonic() - started),
    )
    holes = score.holes
    for survivor, proved in zip(survivors, same, strict=True):
        hole = (survivor.source, survivor.fault) in holes
        print(f"  {'equivalent' if proved else 'not found' if hole else 'listed'}: {survivor}")
    print(
        f"{component}: {len(mutants)} more faults, of {score.faults} {score.found} found, "
        f"{score.harmless} proved equivalent, {len(score.survivors) - len(holes)} listed: {score.percent:.1f} %",
        flush=True,
    )
    return score


def write_outcomes(path: Path, mutants: Sequence[Mutant], outcomes: Sequence[Outcome]) -> None:
    """Write down which test found which fault."""
    rows = (f"{m}\n    {o.by or 'not found'}\n" for m, o in zip(mutants, outcomes, strict=True))
    path.write_text("".join(rows), encoding="utf-8")


@dataclass(frozen=True)
class Task:
    """A component that gets faults."""

    tests: Sequence[str]
    """Files of its bench."""
    sample: Sample
    folder: Path
    before: Score
    deadline: float
    """In seconds since 1970."""


def measured(task: Task) -> Score | str | None:
    """The score; why there is none; None after the deadline."""
    if time.time() > task.deadline:
        return None
    try:
        return run(task.tests, task.sample, task.folder, task.before)
    except SystemExit as problem:
        # The other components are measured all the same.
        return str(problem)


def died(task: Task) -> str:
    """Why there is no score."""
    return f"the process that mutated {task.before.component} died twice"
