"""The configurations to choose from: fields of the hardware parameters, each with its alternatives."""

import itertools
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

from intloom.common.errors import FileFormatError, ParameterError
from intloom.hw.area.components import FAMILY_FIELDS
from intloom.hw.spec.params import HardwareParams, changed, preset

_MOST_POINTS = 10_000
_DEFAULT = """\
preset = "base"
rows = [8, 16, 32]
cols = [8, 16, 32, 64]
scratch_kib = [64, 128, 256]
weight_kib = [128, 256]
vector_lanes = [4, 8]
"""


@dataclass(frozen=True)
class Space:
    """A base and alternatives of some of its fields."""

    base: HardwareParams
    alternatives: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    sample: int | None = None
    """How many points are drawn; None: all."""
    seed: int = 0
    named: frozenset[str] = frozenset()
    """Fields of the base that were asked for, besides those with alternatives."""

    def with_defaults(self, values: Mapping[str, Any]) -> "Space":
        """The space whose base has these values, except for fields that were asked for."""
        asked = {*self.alternatives, *self.named}
        return replace(self, base=changed(self.base, {name: v for name, v in values.items() if name not in asked}))

    def points(self) -> tuple[list[HardwareParams], dict[str, str]]:
        """The valid configurations, each once, and the reason against each of the others by its changes.

        Raises
        ------
        ParameterError
            No configuration is valid.
        """
        names, valid, refused = [*self.alternatives], dict[HardwareParams, None](), dict[str, str]()
        choices = itertools.product(*self.alternatives.values())
        for values in self._drawn([*choices]):
            changes = dict(zip(names, values, strict=True))
            try:
                valid.setdefault(changed(self.base, changes))
            except ParameterError as error:
                refused[", ".join(f"{name} = {value}" for name, value in changes.items())] = str(error)
        if not valid:
            name, reason = next(iter(refused.items()))
            raise ParameterError(f"no point of the space is valid; for example {name}: {reason}")
        return [*valid], refused

    def _drawn(self, choices: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if self.sample is None or self.sample >= len(choices):
            return choices
        return random.Random(self.seed).sample(choices, self.sample)


def read_space(path: Path | None, base: HardwareParams | None = None, named: frozenset[str] = frozenset()) -> Space:
    """The space of a TOML file, or the default one; `base`, with fields that were `named`, replaces its preset.

    Raises
    ------
    FileFormatError
        The file cannot be read, or is no TOML.
    ParameterError
        A field is unknown, or there are too many points.
    """
    name = "the default space" if path is None else str(path)
    try:
        values = tomllib.loads(_DEFAULT if path is None else path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(f"cannot read the space {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileFormatError(f"{path} must be a TOML file: {error}") from None
    try:
        return replace(space_of(values, base), named=named)
    except ParameterError as error:
        raise ParameterError(f"{name}: {error}") from None


def space_of(values: Mapping[str, Any], base: HardwareParams | None = None) -> Space:
    """The space of plain values: those of a TOML file."""
    values = dict(values)
    sample, seed = (_whole(values, name, low) for name, low in (("sample", 1), ("seed", 0)))
    name = values.pop("preset", "base")
    if not isinstance(name, str):
        raise ParameterError(f"preset must be the name of one preset, not {name!r}")
    lists = {key: value for key, value in values.items() if isinstance(value, list)}
    if empty := [key for key, value in lists.items() if not value]:
        raise ParameterError(f"{empty[0]} must have at least one value")
    fixed = {key: value for key, value in values.items() if key not in lists}
    start = base or preset(name)
    # Also checks the names of fields with alternatives; whether a value fits is known only with the others.
    for key, value in lists.items():
        try:
            changed(start, {**fixed, key: value[0]})
        except ParameterError as error:
            if "unknown" in str(error):
                raise
    number = prod(map(len, lists.values()))
    if number > _MOST_POINTS:
        raise ParameterError(f"the space has {number:,} points, of at most {_MOST_POINTS:,}: leave out values")
    return Space(start, {**{key: [value] for key, value in fixed.items()}, **lists}, sample, seed or 0)


def _whole(values: dict[str, Any], name: str, low: int) -> int | None:
    value = values.pop(name, None)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < low):
        raise ParameterError(f"{name} must be a whole number of at least {low}, not {value!r}")
    return value


def device_space(space: Space, family: str) -> Space:
    """The space with fields of FPGAs as a family needs them, unless they were asked for."""
    return space.with_defaults(FAMILY_FIELDS.get(family, {}))
