"""Points that need no coverage, each with a reason."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tools.coverage.counts import Point

FILE = Path(__file__).with_name("waivers.yaml")


@dataclass(frozen=True)
class Waiver:
    """Points by module, kind and name."""

    module: str
    name: str
    reason: str
    kind: str = ""
    text: str = ""
    """What the point's line of the Verilog contains; lines and branches have no names of their own."""

    def covers(self, point: Point, line: str = "") -> bool:
        """Whether it is about this point, on this line of the Verilog."""
        return (
            self.kind in ("", point.kind)
            and re.search(self.text, line) is not None
            and re.fullmatch(self.module, point.module) is not None
            and re.fullmatch(self.name, point.name) is not None
        )


def read_waivers() -> list[Waiver]:
    """All waivers in the tree."""
    return [Waiver(**row) for row in yaml.safe_load(FILE.read_text(encoding="utf-8"))]


def waiver_of(point: Point, waivers: Sequence[Waiver], verilog: Sequence[str] = ()) -> Waiver | None:
    """The first waiver that covers a point; `verilog` are the lines of the source."""
    line = verilog[point.line - 1] if point.line <= len(verilog) else ""
    return next((w for w in waivers if w.covers(point, line)), None)
