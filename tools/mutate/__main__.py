"""How many of a few dozen faults the bench of each component finds: `python -m tools.mutate dma.load:LoadUnit`."""

import argparse
import math
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.mutate.bench import Bench, Outcome
from tools.mutate.equivalence import equivalent
from tools.mutate.listed import unexplained
from tools.mutate.score import SCORES, Score, read_scores, write_score
from tools.mutate.sites import Mutant, draw
from tools.mutate.targets import NOT_MUTATED, targets

_MIN_FAULTS = 10
"""So many are planted even if they take longer than the limit."""


@dataclass(frozen=True)
class Sample:
    """Which faults are planted in a component."""

    count: int
    seed: int = 1
    seconds: float = math.inf
    """After this time no further one is planted: those before are a sample too, since they are in random order."""


def run(component: str, tests: str, sample: Sample, folder: Path) -> Score:
    """Plant faults in one component and print those that its bench does not find."""
    started = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    bench = Bench(component, tests, folder)
    bench.measure()
    mutants = draw(bench.extents(), sample.count, sample.seed)
    outcomes: list[Outcome] = []
    for mutant in mutants:
        if len(outcomes) >= _MIN_FAULTS and time.monotonic() - started > sample.seconds:
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
    listed = len(others) - len(holes)
    seconds = round(time.monotonic() - started)
    score = Score(len(mutants), len(mutants) - len(survivors), sum(same), listed, sample.seed, seconds)
    print(
        f"{component}: {score.faults} faults, {score.found} found, {score.harmless} proved equivalent, "
        f"{score.listed} listed: {score.percent:.1f} %",
        flush=True,
    )
    return score


def write_outcomes(path: Path, mutants: Sequence[Mutant], outcomes: Sequence[Outcome]) -> None:
    """Write down which test found which fault."""
    rows = (f"{m}\n    {o.by or 'not found'}\n" for m, o in zip(mutants, outcomes, strict=True))
    path.write_text("".join(rows), encoding="utf-8")


def measuring_order(scores: Mapping[str, Score], components: Iterable[str]) -> list[str]:
    """Components in the order in which they are measured, since a night does not suffice for all.

    First those without a score, then those whose sources have changed, the quickest first: one slow bench must not take
    the night of many. Then by seed: if it is the date, the score that is longest ago comes first.
    """
    missing = Score()

    def rank(name: str) -> tuple[bool, bool, float, int]:
        score = scores.get(name, missing)
        return name in scores, score.current, 0 if score.current else score.seconds, score.seed

    return sorted(components, key=rank)


def main() -> None:
    """Parse the command line and mutate the components."""
    known = targets()
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("components", nargs="*", help="such as dma.load:LoadUnit; without any: all")
    parser.add_argument("--count", type=int, default=40, help="faults for each component")
    parser.add_argument("--seed", type=int, default=1, help="chooses the faults")
    parser.add_argument("--resume", action="store_true", help="leave out components whose score is up to date")
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no component after this time")
    parser.add_argument(
        "--limit", type=float, default=math.inf, help="minutes after which a component gets no more faults"
    )
    parser.add_argument("--output", type=Path, default=Path("out/mutate"), help="folder for results and netlists")
    options = parser.parse_args()
    # As with an interrupt from the keyboard, the processes that run for this one end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if unknown := set(options.components) - set(known):
        reasons = "".join(f"\n{name}: {NOT_MUTATED[name]}" for name in unknown if name in NOT_MUTATED)
        parser.error(f"there are no mutations of {', '.join(sorted(unknown))}{reasons}")
    failed = []
    deadline = time.monotonic() + 60 * options.minutes
    scores = read_scores()
    sample = Sample(options.count, options.seed, 60 * options.limit)
    for name in options.components or measuring_order(scores, known):
        if time.monotonic() > deadline:
            break
        if options.resume and name in scores and scores[name].current:
            continue
        folder = options.output / name.replace(":", ".")
        try:
            score = run(name, known[name], sample, folder)
            # One that was cut short replaces no better one.
            if not (name in scores and scores[name].current and scores[name].faults > score.faults):
                write_score(SCORES, name, score)
        except SystemExit as problem:
            # The other components are measured all the same.
            print(f"{name}: {problem}", flush=True)
            failed.append(name)
    if failed:
        sys.exit(f"no score of {', '.join(failed)}")


if __name__ == "__main__":
    main()
