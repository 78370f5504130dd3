"""Points that need no coverage, each with a reason."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tools.coverage.merge import SharedPoint

FILE = Path(__file__).with_name("waivers.yaml")


@dataclass(frozen=True)
class Waiver:
    """Points by module, kind and name."""

    module: str
    name: str
    reason: str
    kind: str = "toggle"
    text: str = ""
    """What the point's line of the Verilog contains; lines and branches have no names of their own."""

    def covers(self, point: SharedPoint) -> bool:
        """Whether it is about this point."""
        return (
            self.kind == point.kind
            and re.search(self.text, point.text) is not None
            and re.fullmatch(self.module, point.module) is not None
            and re.fullmatch(self.name, point.name) is not None
        )


def read_waivers() -> list[Waiver]:
    """All waivers in the tree."""
    return [Waiver(**row) for row in yaml.safe_load(FILE.read_text(encoding="utf-8"))]


def waiver_of(point: SharedPoint, waivers: Sequence[Waiver]) -> Waiver | None:
    """The first waiver that covers a point."""
    return next((w for w in waivers if w.covers(point)), None)


def unneeded(points: Iterable[SharedPoint], waivers: Sequence[Waiver]) -> list[Waiver]:
    """Waivers without which no further point would be missed: all their points are reached, or waived before."""
    needed = {waiver_of(point, waivers) for point in points if not point.count and not point.constant}
    return [w for w in waivers if w not in needed]
