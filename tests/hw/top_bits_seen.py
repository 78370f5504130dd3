"""Highest bits of counting registers that rise in the benches of a test."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from amaranth.hdl import Fragment, Value

from intloom.common.atomic_write import write_text
from tools.coverage.counting_registers import counting_registers

EVIDENCE = Path(__file__).with_name("counting_registers.yaml")
"""Tests, each with the registers whose highest bits rise in it."""
RECORD_VARIABLE = "INTLOOM_COUNTING_REGISTERS"
"""A folder: every test records there the registers whose highest bits rise in it."""
Process = Callable[[Any], Any]


@cache
def evidence() -> Mapping[str, frozenset[str]]:
    """Registers by test."""
    found = yaml.safe_load(EVIDENCE.read_text(encoding="utf-8")) if EVIDENCE.exists() else {}
    return {test: frozenset(keys) for test, keys in found.items()}


class _Watched:
    """The registers of one test's benches."""

    def __init__(self, keys: frozenset[str] | None) -> None:
        self.keys = keys
        self.risen: set[str] = set()


_current: list[_Watched] = []


def watchers(design: Fragment) -> Iterator[Process]:
    """A process for each watched register; together they note the keys of which every register's top bit has risen."""
    if not _current:
        return
    watched = _current[-1]
    waiting: dict[str, set[int]] = {}
    for number, register in enumerate(counting_registers(design)):
        if watched.keys is None or register.key in watched.keys:
            waiting.setdefault(register.key, set()).add(number)
            yield _watcher(register.top, number, register.key, waiting, watched.risen)


def _watcher(top: Value, number: int, key: str, waiting: Mapping[str, set[int]], risen: set[str]) -> Process:
    async def process(ctx: Any) -> None:
        await ctx.posedge(top)
        waiting[key].discard(number)
        if not waiting[key]:
            risen.add(key)

    return process


@contextmanager
def check(test: str) -> Iterator[None]:
    """Watch what a test is evidence for; it fails if a highest bit stays 0."""
    folder = os.environ.get(RECORD_VARIABLE)
    keys = evidence().get(test, frozenset())
    if not keys and not folder:
        yield
        return
    watched = _Watched(None if folder else keys)
    _current.append(watched)
    try:
        yield
    finally:
        _current.pop()
    if folder:
        _record(Path(folder), test, watched.risen)
    else:
        missing = sorted(keys - watched.risen)
        assert not missing, f"these registers' highest bits stay 0, but {EVIDENCE.name} says that they rise: {missing}"


def _record(folder: Path, test: str, keys: Iterable[str]) -> None:
    name = f"{len([*folder.iterdir()])}-{os.getpid()}.json"
    write_text(folder / name, json.dumps({"test": test, "keys": sorted(keys)}))
