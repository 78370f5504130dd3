"""What is covered of each component: `docs/data/coverage.json`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path

from amaranth.hdl import Fragment
from amaranth.lib import wiring

from intloom.common import evidence
from intloom.hw.mac.array.product import OneModule
from tools.components import name_of
from tools.coverage.merge import SharedPoint
from tools.coverage.waivers import Waiver, waiver_of

ROOT = Path(__file__).parents[2]
SUMMARY = ROOT / "docs" / "data" / "coverage.json"
SOURCES = ("hw/npu.py",)
"""What is measured, with what it imports."""
KINDS = ("line", "branch", "toggle")
_ARRAY = "intloom_mac_array"
"""The array's plain form, which the hierarchy names otherwise."""
_ARRAY_COMPONENT = "mac.array.mac_array:MacArray"


@dataclass(frozen=True)
class Share:
    """Points of one kind."""

    reached: int = 0
    missed: int = 0
    waived: int = 0
    constant: int = 0
    """Not among the others: bits that no input can change, and branches that only such a bit could take."""

    @property
    def percent(self) -> float:
        """Share of the points without a waiver that were reached."""
        return 100 * self.reached / max(1, self.reached + self.missed)

    @property
    def strict_percent(self) -> float:
        """Share of all points that were reached."""
        return 100 * self.reached / max(1, self.reached + self.missed + self.waived)

    def __add__(self, other: Share) -> Share:
        """The sum."""
        return Share(*(sum(counts) for counts in zip(astuple(self), astuple(other), strict=True)))


@dataclass
class Tally:
    """Points of one kind in one module."""

    reached: int = 0
    waived: int = 0
    constant: int = 0
    missed: list[SharedPoint] = field(default_factory=list)


def tallies(points: Iterable[SharedPoint], waivers: Sequence[Waiver]) -> dict[tuple[str, str], Tally]:
    """Tallies by module and kind."""
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
    for point in points:
        tally = tallies[point.module, point.kind]
        if point.count:
            tally.reached += 1
        elif point.constant:
            tally.constant += 1
        elif waiver_of(point, waivers) is not None:
            tally.waived += 1
        else:
            tally.missed.append(point)
    return tallies


def missed_text(found: Mapping[tuple[str, str], Tally], cover_points: Sequence[str]) -> str:
    """A line for each point that was not reached: cover points first, then those of the RTL by module."""
    points = [f"{p.module} {p.kind} {p.name} ({p.where}: {p.text})" for tally in found.values() for p in tally.missed]
    return "".join(f"{line}\n" for line in (*cover_points, *sorted(points)))


def component_paths(top: wiring.Component, name: str) -> dict[str, str]:
    """The component behind each module of a design, by the module's path."""
    return dict(_below(Fragment.get(top, OneModule(arrays=True)), name))


def _below(fragment: Fragment, path: str) -> Iterator[tuple[str, str]]:
    for origin in getattr(fragment, "origins", None) or ():
        if isinstance(origin, wiring.Component):
            yield path, name_of(type(origin))
    for inner, name, _ in fragment.subfragments:
        yield from _below(inner, f"{path}.{name}")


def component_of(module: str, paths: Mapping[str, str]) -> str:
    """The component that a module of the Verilog is or belongs to."""
    # Yosys appends a number to the names of different modules with one path.
    parts = module.partition("$")[0].split(".")
    if parts[0] == _ARRAY:
        return _ARRAY_COMPONENT
    names = (paths.get(".".join(parts[:count])) for count in range(len(parts), 0, -1))
    return next((name for name in names if name is not None), module)


def shares(found: Mapping[tuple[str, str], Tally], paths: Mapping[str, str]) -> dict[str, dict[str, Share]]:
    """Shares of components from tallies of modules."""
    by_component: dict[str, dict[str, Share]] = defaultdict(dict)
    for (module, kind), tally in found.items():
        kinds = by_component[component_of(module, paths)]
        kinds[kind] = kinds.get(kind, Share()) + Share(tally.reached, len(tally.missed), tally.waived, tally.constant)
    return dict(sorted(by_component.items()))


def total(components: Mapping[str, Mapping[str, Share]], kind: str) -> Share:
    """The sum over all components."""
    return sum((kinds[kind] for kinds in components.values() if kind in kinds), Share())


def write_summary(cover_points: int, missed: Sequence[str], components: Mapping[str, Mapping[str, Share]]) -> None:
    """Replace the measurement in the repository."""
    values = {
        "cover_points": cover_points,
        "missed_cover_points": [*missed],
        "components": {
            name: {kind: asdict(share) for kind, share in kinds.items()} for name, kinds in components.items()
        },
    }
    evidence.record(SUMMARY, "all", evidence.measured(values, "make coverage", ROOT, SOURCES))


def read_shares(row: evidence.Evidence) -> dict[str, dict[str, Share]]:
    """Shares by kind, by component."""
    components = row.values["components"].items()
    return {name: {kind: Share(**share) for kind, share in kinds.items()} for name, kinds in components}
