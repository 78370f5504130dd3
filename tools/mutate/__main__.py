"""How many of a few dozen faults the bench of each component finds: `python -m tools.mutate dma.load:LoadUnit`."""

import argparse
import math
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from intloom.sim.processes import Processes, Work
from tools.mutate.bench import Bench, Outcome
from tools.mutate.equivalence import equivalent
from tools.mutate.listed import unexplained
from tools.mutate.score import SCORES, Score, first_seed, read_scores, write_score
from tools.mutate.sites import Mutant, draw
from tools.mutate.targets import NOT_MUTATED, targets

_MIN_FAULTS = 10
"""A component gets so many even if they take longer than the limit."""


@dataclass(frozen=True)
class Sample:
    """Which faults are planted in a component: the next ones of its order, which its seed gives."""

    count: int
    """How many a component gets, those of earlier calls included."""
    seconds: float = math.inf
    """So long after the run without a fault no further one is planted: those before are a sample too, since they are in
    random order."""


def run(component: str, tests: str, sample: Sample, folder: Path, before: Score) -> Score:
    """Plant faults in one component, after those of `before`, and print those that its bench does not find."""
    started = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    bench = Bench(component, tests, folder)
    bench.measure()
    measured = time.monotonic()
    drawn = draw(bench.extents(), sample.count, before.seed)
    mutants = drawn[before.faults :]
    outcomes: list[Outcome] = []
    for mutant in mutants:
        if before.faults + len(outcomes) >= _MIN_FAULTS and time.monotonic() - measured > sample.seconds:
            mutants = mutants[: len(outcomes)]
            break
        outcomes.append(bench.run(mutant))
        # After each fault, so that progress and the first holes can be read while the others are planted.
        write_outcomes(folder / "outcomes.txt", mutants[: len(outcomes)], outcomes)
    survivors = [m for m, outcome in zip(mutants, outcomes, strict=True) if not outcome.found]
    # Listed ones too: a proof is worth more than a reason.
    same = equivalent(bench, survivors, folder)
    others = [m for m, proved in zip(survivors, same, strict=True) if not proved]
    holes = unexplained(component, others)
    for survivor, proved in zip(survivors, same, strict=True):
        print(f"  {'equivalent' if proved else 'not found' if survivor in holes else 'listed'}: {survivor}")
    score = replace(
        before,
        faults=before.faults + len(mutants),
        found=before.found + len(mutants) - len(survivors),
        harmless=before.harmless + sum(same),
        listed=before.listed + len(others) - len(holes),
        exhausted=before.faults + len(mutants) == len(drawn) < sample.count,
        seconds=before.seconds + round(time.monotonic() - started),
    )
    print(
        f"{component}: {len(mutants)} more faults, of {score.faults} {score.found} found, "
        f"{score.harmless} proved equivalent, {score.listed} listed: {score.percent:.1f} %",
        flush=True,
    )
    return score


def write_outcomes(path: Path, mutants: Sequence[Mutant], outcomes: Sequence[Outcome]) -> None:
    """Write down which test found which fault."""
    rows = (f"{m}\n    {o.by or 'not found'}\n" for m, o in zip(mutants, outcomes, strict=True))
    path.write_text("".join(rows), encoding="utf-8")


def measuring_order(scores: Mapping[str, Score], components: Iterable[str], count: int) -> list[str]:
    """Components that have not had so many faults, in the order in which they get them.

    First those without a score, then those whose sources have changed, then the others, each time the quickest ones
    first: one slow bench must not take the night of many.
    """
    missing = Score()

    def rank(name: str) -> tuple[bool, bool, float]:
        score = scores.get(name, missing)
        return name in scores, score.current, score.seconds / max(1, score.faults)

    left = [n for n in components if not scores.get(n, missing).has(count)]
    return sorted(left, key=rank)


@dataclass(frozen=True)
class _Mutation:
    """A task: one component's faults."""

    component: str
    tests: str
    sample: Sample
    folder: Path
    before: Score
    deadline: float
    """In seconds since 1970."""


def _measured(task: _Mutation) -> Score | str | None:
    """The score; why there is none; None after the deadline."""
    if time.time() > task.deadline:
        return None
    try:
        return run(task.component, task.tests, task.sample, task.folder, task.before)
    except SystemExit as problem:
        # The other components are measured all the same.
        return str(problem)


def _died(task: _Mutation) -> str:
    return f"the process that mutated {task.component} died twice"


def main() -> None:
    """Parse the command line and mutate the components."""
    known = targets()
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("components", nargs="*", help="such as dma.load:LoadUnit; without any: all")
    parser.add_argument("--count", type=int, default=40, help="faults for each component, those of earlier calls too")
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no component after this time")
    parser.add_argument(
        "--limit", type=float, default=math.inf, help="minutes after which a component gets no more faults"
    )
    parser.add_argument("--jobs", type=int, default=1, help="components that are mutated at once")
    parser.add_argument("--output", type=Path, default=Path("out/mutate"), help="folder for results and netlists")
    options = parser.parse_args()
    # As with an interrupt from the keyboard, the processes that run for this one end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if unknown := set(options.components) - set(known):
        reasons = "".join(f"\n{name}: {NOT_MUTATED[name]}" for name in unknown if name in NOT_MUTATED)
        parser.error(f"there are no mutations of {', '.join(sorted(unknown))}{reasons}")
    scores = read_scores()
    deadline = time.time() + 60 * options.minutes
    tasks = [
        _Mutation(
            name,
            known[name],
            Sample(options.count, 60 * options.limit),
            options.output / name.replace(":", "."),
            scores[name] if name in scores and scores[name].current else Score(seed=first_seed(name)),
            deadline,
        )
        for name in measuring_order(scores, options.components or known, options.count)
    ]
    failed = []
    work = Work[_Mutation, Score | str | None](_measured, lambda task: task.component, _died)
    for task, result in work.results(tasks, Processes(options.jobs)):
        if isinstance(result, str):
            print(f"{task.component}: {result}", flush=True)
            failed.append(task.component)
        elif result is not None:
            write_score(SCORES, task.component, result)
    if failed:
        sys.exit(f"no score of {', '.join(failed)}")


if __name__ == "__main__":
    main()
