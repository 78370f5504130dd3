"""How many of a few dozen faults the bench of each component finds: `python -m tools.mutate dma.load:LoadUnit`."""

import argparse
import math
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from intloom.sim.processes import Processes, Work
from tools.mutate.component import Sample, Task, died, measured
from tools.mutate.score import SCORES, Score, first_seed, read_scores, write_score
from tools.mutate.targets import NOT_MUTATED, targets


def measuring_order(scores: Mapping[str, Score], components: Iterable[str], count: int) -> list[str]:
    """Components that have not had so many faults, in the order in which they get them.

    First those without a score, then those whose sources have changed, then the others, each time the quickest ones
    first: one slow bench must not take the night of many.
    """

    def score_of(name: str) -> Score:
        return scores.get(name, Score(name))

    def rank(name: str) -> tuple[bool, bool, float]:
        score = score_of(name)
        return name in scores, score.current, score.seconds / max(1, score.faults)

    left = [n for n in components if not score_of(n).has(count)]
    return sorted(left, key=rank)


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
        Task(
            known[name],
            Sample(options.count, 60 * options.limit),
            options.output / name.replace(":", "."),
            scores[name] if name in scores and scores[name].current else Score(name, seed=first_seed(name)),
            deadline,
        )
        for name in measuring_order(scores, options.components or known, options.count)
    ]
    failed = []
    work = Work[Task, Score | str | None](measured, lambda task: task.before.component, died)
    for task, result in work.results(tasks, Processes(options.jobs)):
        if isinstance(result, str):
            print(f"{task.before.component}: {result}", flush=True)
            failed.append(task.before.component)
        elif result is not None:
            write_score(SCORES, result)
    if failed:
        sys.exit(f"no score of {', '.join(failed)}")


if __name__ == "__main__":
    main()
