"""What is covered of each component: `docs/data/coverage.json`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from amaranth.hdl import Fragment
from amaranth.lib import wiring

from intloom.common.atomic_write import write_text
from intloom.hw.mac.array.product import OneModule
from intloom.hw.npu import TOP_NAME, Npu
from intloom.hw.spec.params import HardwareParams
from tools.components import name_of
from tools.coverage.page import Tally

SUMMARY = Path(__file__).parents[2] / "docs" / "data" / "coverage.json"
_ARRAY = "intloom_mac_array"
"""The array's plain form, which the hierarchy names otherwise."""
_ARRAY_COMPONENT = "mac.array.mac_array:MacArray"


@dataclass(frozen=True)
class Share:
    """Points of one kind."""

    reached: int = 0
    missed: int = 0
    waived: int = 0

    @property
    def percent(self) -> float:
        """Share of the points without a waiver that were reached."""
        return 100 * self.reached / max(1, self.reached + self.missed)

    def plus(self, other: Share) -> Share:
        """The sum."""
        return Share(self.reached + other.reached, self.missed + other.missed, self.waived + other.waived)


@dataclass(frozen=True)
class Summary:
    """One measurement."""

    date: str
    commit: str
    reached_cover_points: int
    cover_points: int
    components: Mapping[str, Mapping[str, Share]] = field(default_factory=dict)
    """Shares by kind, by component."""

    def total(self, kind: str) -> Share:
        """The sum over all components."""
        found = Share()
        for kinds in self.components.values():
            found = found.plus(kinds.get(kind, Share()))
        return found


def component_paths(params: HardwareParams) -> dict[str, str]:
    """The component behind each module, by the module's path."""
    return dict(_below(Fragment.get(Npu(params), OneModule(arrays=True)), TOP_NAME))


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
        kinds[kind] = kinds.get(kind, Share()).plus(Share(tally.reached, len(tally.missed), tally.waived))
    return dict(sorted(by_component.items()))


def write_summary(summary: Summary, path: Path = SUMMARY) -> None:
    """Replace the summary in the repository."""
    write_text(path, json.dumps(asdict(summary), indent=1) + "\n")


def read_summary(path: Path = SUMMARY) -> Summary | None:
    """The summary in the repository."""
    if not path.exists():
        return None
    values = json.loads(path.read_text(encoding="utf-8"))
    components = {
        name: {kind: Share(**share) for kind, share in kinds.items()} for name, kinds in values["components"].items()
    }
    return Summary(**values | {"components": components})
