"""The choice of hardware parameters: a preset, a file or others, and changes; its options in the commands of make."""

import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from intloom.common.errors import UsageError
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import HardwareParams, changed, from_toml, parse_changes, preset

DEFAULT_PRESET = "base"


def choose_params(
    base: str | HardwareParams | None,
    config: Path | None = None,
    match: RoundingMode | None = None,
    changes: Mapping[str, Any] | None = None,
) -> HardwareParams:
    """Hardware parameters from a preset, a TOML file or others, with changes; `match` overrides the rounding mode.

    Raises
    ------
    UsageError
        Both a preset and a file are given.
    ParameterError
        The preset is unknown or parameters contradict each other.
    """
    if base is not None and config is not None:
        raise UsageError(f"preset {base} and --config {config} exclude each other; give one of them")
    if isinstance(base, HardwareParams):
        params = base
    else:
        params = from_toml(config) if config is not None else preset(DEFAULT_PRESET if base is None else base)
    asked = dict(changes or {}) | ({} if match is None else {"match": str(match)})
    return changed(params, asked) if asked else params


def named_fields(config: Path | None, changes: Sequence[str]) -> frozenset[str]:
    """Fields that the file or a change names; the file must have been read as parameters before."""
    file = {} if config is None else tomllib.loads(config.read_text(encoding="utf-8"))
    return frozenset((*file, *parse_changes(changes)))


def add_hardware(parser: ArgumentParser, default: str) -> None:
    """Add the options to a parser."""
    parser.add_argument("preset", nargs="?", help=f"name of a preset; {default} unless a file is given")
    parser.add_argument("--config", metavar="FILE", type=Path, help="TOML file with hardware parameters")
    parser.add_argument("--set", metavar="FIELD=VALUE", action="append", default=[], help="change a parameter")
    parser.set_defaults(default_preset=default)


def hardware(options: Namespace) -> HardwareParams:
    """The parameters that the options choose; raises as `choose_params`."""
    name = options.preset if options.preset or options.config else options.default_preset
    return choose_params(name, options.config, changes=parse_changes(options.set))
