"""Options that choose hardware parameters in the commands behind make: a preset or a file, and changes to it."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from intloom.common.errors import UsageError
from intloom.hw.spec.params import HardwareParams, changed, from_toml, parse_changes, preset


def add_hardware(parser: ArgumentParser, default: str) -> None:
    """Add the options to a parser."""
    parser.add_argument("preset", nargs="?", help=f"name of a preset; {default} unless a file is given")
    parser.add_argument("--config", metavar="FILE", type=Path, help="TOML file with hardware parameters")
    parser.add_argument("--set", metavar="FIELD=VALUE", action="append", default=[], help="change a parameter")
    parser.set_defaults(default_preset=default)


def hardware(options: Namespace) -> HardwareParams:
    """The parameters that the options choose.

    Raises
    ------
    UsageError
        Both a preset and a file are given.
    ParameterError
        Parameters are unknown or contradict each other.
    """
    if options.preset is not None and options.config is not None:
        raise UsageError(f"preset {options.preset} and --config {options.config} exclude each other; give one of them")
    base = from_toml(options.config) if options.config else preset(options.preset or options.default_preset)
    return changed(base, parse_changes(options.set)) if options.set else base
