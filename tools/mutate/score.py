"""Scores of the mutation tests."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from intloom.common import evidence
from tools.mutate.listed import Fault, unexplained
from tools.mutate.subject import source_of, subject_of
from tools.mutate.targets import bench_of

ROOT = Path(__file__).parents[2]
SCORES = ROOT / "docs" / "data" / "mutation.json"


@dataclass(frozen=True)
class Score:
    """The faults of one component."""

    component: str
    faults: int = 0
    """How many were drawn, in all calls since component and bench changed."""
    found: int = 0
    """A test of the bench fails."""
    harmless: int = 0
    """Proved to change no output and no register that one depends on."""
    survivors: tuple[Fault, ...] = ()
    """All others."""
    seed: int = 1
    """Gives the order in which they are drawn."""
    seconds: float = 0.0
    """Time that the measurement took."""
    asked: int = 0
    """How many were asked for when all that could be drawn were planted; a component may have fewer."""
    current: bool = True
    """Whether component and bench are unchanged since."""

    @property
    def holes(self) -> list[Fault]:
        """Survivors that are not listed with a reason."""
        return unexplained(self.component, self.survivors)

    @property
    def counted(self) -> int:
        """Faults that are neither proved harmless nor listed."""
        return self.found + len(self.holes)

    @property
    def percent(self) -> float:
        """Share of them that were found."""
        return 100 * self.found / max(1, self.counted)

    def has(self, count: int) -> bool:
        """Whether it is up to date, and of so many faults, or of all that were drawn for as many."""
        return self.current and max(self.faults, self.asked) >= count


def first_seed(component: str) -> int:
    """The seed of a component that has no score of today's sources: another one whenever they change."""
    return int(subject_of(component), 16) % 2**32


def is_current(component: str, row: evidence.Evidence) -> bool:
    """Whether the component's Verilog and its bench have not changed since."""
    return row.content == subject_of(component)


def read_scores(path: Path = SCORES) -> Mapping[str, Score]:
    """All scores by component."""
    return {
        name: Score(
            name,
            **row.values | {"survivors": tuple((line, fault) for line, fault in row.values["survivors"])},
            current=is_current(name, row),
        )
        for name, row in evidence.read(path).items()
    }


def write_score(path: Path, score: Score) -> None:
    """Add or replace one score."""
    name, values = score.component, {n: v for n, v in asdict(score).items() if n not in {"component", "current"}}
    sources, command = (source_of(name), *bench_of(name)), f"python -m tools.mutate {name}"
    evidence.record(path, name, evidence.measured(values, command, ROOT, sources, subject_of(name)))
