"""The options that choose hardware parameters, for every command that takes a preset."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from intloom.hw.options import choose_params, named_fields
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import FIELD_TYPES, PRESETS, HardwareParams, parse_changes

Preset = Annotated[
    str | None,
    typer.Option(
        "--preset", metavar="P", help=f"Hardware preset: {', '.join(PRESETS)}.", autocompletion=lambda: [*PRESETS]
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="TOML file with hardware parameters, or a preset and changes to it."),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Change a hardware parameter, such as rows=8; fields that depend on it follow. Repeatable.",
        autocompletion=lambda: [f"{name}=" for name in FIELD_TYPES],
    ),
]


@dataclass(frozen=True, kw_only=True)
class HardwareOptions:
    """A preset or a file, and changes to it."""

    preset: Preset = None
    config: Config = None
    changes: Changes = None
    match: Annotated[RoundingMode | None, typer.Option(help="Rounding mode. Default: that of the preset.")] = None

    @property
    def params(self) -> HardwareParams:
        """The hardware parameters.

        Raises
        ------
        UsageError
            Both a preset and a file are given.
        ParameterError
            Parameters are unknown or contradict each other.
        """
        return self.params_or(None)

    @property
    def chosen(self) -> HardwareParams | None:
        """The hardware parameters if any of the options is given."""
        return self.params if (self.preset, self.config, self.changes, self.match) != (None,) * 4 else None

    @property
    def named(self) -> frozenset[str]:
        """Fields that the file or a change names; the file must have been read as parameters before."""
        return named_fields(self.config, self.changes or ())

    def params_or(self, default: str | None) -> HardwareParams:
        """The hardware parameters; without preset and file, those of the preset `default`, and changes to it."""
        name = default if self.preset is None and self.config is None else self.preset
        return choose_params(name, self.config, self.match, parse_changes(self.changes or ()))
