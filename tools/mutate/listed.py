"""Faults that change nothing that matters, each with the reason: they are no holes in a bench."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import yaml

Fault = tuple[str, str]
"""A line of the source, and what is wrong in it: it stays the same when other lines are edited."""
LIST = Path(__file__).with_name("equivalent.yaml")


@cache
def read_list(path: Path = LIST) -> dict[str, dict[Fault, str]]:
    """Of every component the reasons, by the line of the source and the fault in it."""
    rows = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    return {
        component: {
            (line, fault): entry["reason"]
            for entry in entries
            for line in entry.get("lines") or [entry["line"]]
            for fault in entry["faults"]
        }
        for component, entries in rows.items()
    }


def unexplained(component: str, faults: Iterable[Fault], path: Path = LIST) -> list[Fault]:
    """Those without a reason. A listed fault may be a pattern, for the enables of many stages or lanes."""
    known = read_list(path).get(component, {})
    return [
        (line, fault) for line, fault in faults if not any(line == at and fnmatchcase(fault, of) for at, of in known)
    ]
