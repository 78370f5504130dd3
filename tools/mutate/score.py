"""Scores of the mutation tests."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from intloom.common import evidence
from tools.mutate.targets import bench_of

ROOT = Path(__file__).parents[2]
SCORES = ROOT / "docs" / "data" / "mutation.json"


@dataclass(frozen=True)
class Score:
    """The faults of one component."""

    faults: int = 0
    """How many were drawn."""
    found: int = 0
    """A test of the bench fails."""
    harmless: int = 0
    """Proved to change no output and no register."""
    listed: int = 0
    """Listed with a reason why they change nothing that matters."""
    seed: int = 1
    """The faults were drawn with it."""
    seconds: float = 0.0
    """Time that the measurement took; 0 of scores before it was noted."""
    current: bool = True
    """Whether component and bench are unchanged since."""

    @property
    def percent(self) -> float:
        """Share of the faults that are neither proved harmless nor listed, and were found."""
        return 100 * self.found / max(1, self.faults - self.harmless - self.listed)


def sources_of(component: str) -> tuple[str, str]:
    """The component's module and its bench."""
    return f"hw/{component.partition(':')[0].replace('.', '/')}.py", bench_of(component)


def read_scores(path: Path = SCORES) -> Mapping[str, Score]:
    """All scores by component."""
    return {name: Score(**row.values, current=row.is_current(ROOT)) for name, row in evidence.read(path).items()}


def write_score(path: Path, component: str, score: Score) -> None:
    """Add or replace one score."""
    values = {name: value for name, value in asdict(score).items() if name != "current"}
    row = evidence.measured(values, f"python -m tools.mutate {component}", ROOT, sources_of(component))
    evidence.record(path, component, row)
