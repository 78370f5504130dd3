"""An estimate of the energy of a run: counts of operations times a table of published figures."""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from intloom.common.errors import FileFormatError, UsageError
from intloom.exploration.work import Work
from intloom.hw.spec.params import HardwareParams

_TABLE = "technologies.toml"
_NUMBERS = ("product", "sum", "dram")
_TABLE_BITS = 64
"""Bits of a memory access in the tables."""
_SUM_BITS = 32


@dataclass(frozen=True)
class Technology:
    """Energy of operations in pJ."""

    name: str
    source: str
    product: float
    sum: float
    dram: float
    """64 bits of DRAM."""
    memory: tuple[tuple[float, float], ...]
    """On-chip memories: KiB, and pJ for 64 bits."""

    def access(self, kib: float, bits: int) -> float:
        """The energy of an access to an on-chip memory of this size."""
        pairs = zip(self.memory, self.memory[1:], strict=False)
        (low, energy), (high, more) = next((p for p in pairs if kib <= p[1][0]), (self.memory[-2], self.memory[-1]))
        power = math.log(more / energy) / math.log(high / low)
        return float(energy * (kib / low) ** power * bits / _TABLE_BITS)


def energy(work: Work, params: HardwareParams, technology: Technology) -> dict[str, float]:
    """Microjoules of a run by what uses them; an estimate, without clock tree, control, leakage and host."""
    word = 8 * params.word_bytes
    parts = {
        "products": (work.macs + work.vector_macs) * (technology.product + technology.sum),
        "scratchpad": work.scratch * technology.access(params.scratch_kib / params.scratch_banks, word),
        "weight memory": work.weight_words * technology.access(params.weight_kib, word),
        # Each update reads and writes a sum in a bank of `strip` pixels.
        "accumulators": 2 * work.sums * technology.access(params.strip * params.cols * 4 / 1024, _SUM_BITS),
        "DRAM": work.dram * technology.dram * word / _TABLE_BITS,
    }
    return {name: picojoules / 1e6 for name, picojoules in parts.items()}


def technologies() -> dict[str, Technology]:
    """The tables of this package by name."""
    return _parse((files("intloom.exploration") / _TABLE).read_text(encoding="utf-8"), _TABLE)


def technology_table() -> str:
    """The tables of this package as text, with their sources."""
    return (files("intloom.exploration") / _TABLE).read_text(encoding="utf-8")


def choose_technology(word: str) -> Technology:
    """A technology by name, or the only one of a TOML file.

    Raises
    ------
    UsageError
        There is neither.
    FileFormatError
        The file is no such table.
    """
    known = technologies()
    if word in known:
        return known[word]
    if not word.endswith(".toml"):
        raise UsageError(f"--technology must be one of {', '.join(known)}, or a file ending in .toml, not {word!r}")
    try:
        tables = _parse(Path(word).read_text(encoding="utf-8"), word)
    except OSError as error:
        raise FileFormatError(f"cannot read {word}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(f"{word} must be a TOML file") from None
    if len(tables) != 1:
        raise FileFormatError(f"{word} must have the table of one technology, not {len(tables)}")
    return next(iter(tables.values()))


def _parse(text: str, name: str) -> dict[str, Technology]:
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileFormatError(f"{name} must be a TOML file: {error}") from None
    return {key: _technology(key, table, name) for key, table in tables.items()}


def _technology(key: str, table: Any, file: str) -> Technology:
    wanted = f"{file}: [{key}] must have source, and product, sum and dram in pJ, and memory = [[KiB, pJ], [KiB, pJ]]"
    if not isinstance(table, dict) or set(table) != {"source", "memory", *_NUMBERS}:
        raise FileFormatError(f"{wanted}; found {', '.join(table) if isinstance(table, dict) else table!r}")
    rows = table["memory"]
    if not (isinstance(rows, list) and len(rows) >= 2 and all(isinstance(r, list) and len(r) == 2 for r in rows)):
        raise FileFormatError(f"{wanted}; memory must have at least two pairs")
    numbers: Sequence[Any] = [*(table[n] for n in _NUMBERS), *(n for row in rows for n in row)]
    if any(isinstance(n, bool) or not isinstance(n, int | float) or not 0 < n < math.inf for n in numbers):
        raise FileFormatError(f"{wanted}; every number must be above 0")
    sizes = [row[0] for row in rows]
    if sizes != sorted(set(sizes)):
        raise FileFormatError(f"{wanted}; sizes of memories must rise")
    memory = tuple((float(size), float(picojoules)) for size, picojoules in rows)
    values = {n: float(table[n]) for n in _NUMBERS}
    return Technology(name=key, source=str(table["source"]), memory=memory, **values)
