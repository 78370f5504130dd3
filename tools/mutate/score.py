"""Scores of the mutation tests, kept in the repository with a key of the sources that they belong to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from intloom.common.atomic_write import write_text
from tools.mutate.sources import code_used

ROOT = Path(__file__).parents[2]
SCORES = ROOT / "docs" / "data" / "mutation.json"
_METHOD = b"a test of the bench fails"
"""What a fault that is found means; scores of another meaning are out of date."""


@dataclass(frozen=True)
class Score:
    """The faults of one component."""

    key: str
    """Hash of the component's and the bench's code, with what they import."""
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

    @property
    def percent(self) -> float:
        """Share of the faults that are neither proved harmless nor listed, and were found."""
        return 100 * self.found / max(1, self.faults - self.harmless - self.listed)


def sources_key(component: str, tests: str, root: Path = ROOT) -> str:
    """Changes with the component's module, with its bench, and with what they use of other files (`sources`)."""
    module = component.partition(":")[0].replace(".", "/")
    texts = [text.encode() for text in code_used((f"hw/{module}.py", tests), root)]
    return hashlib.sha256(b"\0".join([_METHOD, *texts])).hexdigest()[:16]


def read_scores(path: Path = SCORES) -> Mapping[str, Score]:
    """All scores by component."""
    if not path.exists():
        return {}
    return {name: Score(**row) for name, row in json.loads(path.read_text(encoding="utf-8")).items()}


def write_score(path: Path, component: str, score: Score) -> None:
    """Add or replace one score."""
    rows = {name: asdict(known) for name, known in read_scores(path).items()} | {component: asdict(score)}
    text = json.dumps(dict(sorted(rows.items())), indent=1)
    write_text(path, f"{text}\n")
