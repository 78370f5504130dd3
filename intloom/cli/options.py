"""Options that several subcommands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from intloom.cache import Cache
from intloom.cli.console import Terminal
from intloom.common.errors import UsageError
from intloom.hw.spec.params import PRESETS

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
CacheFolder = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Cache folder; else INTLOOM_CACHE, else the user's."),
]
Preset = Annotated[
    str | None,
    typer.Option("--preset", metavar="P", help=f"Hardware: {', '.join(PRESETS)}.", autocompletion=lambda: [*PRESETS]),
]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Hardware parameters as a TOML file.")]


def terminal_of(context: typer.Context) -> Terminal:
    """The terminal that the entry point opened."""
    found = context.find_object(Terminal)
    assert found is not None  # the entry point gives it to every context
    return found


def check_least(option: str, number: int | None, least: int) -> None:
    """Refuses a number, where one is given, below the least that the option takes."""
    if number is not None and number < least:
        raise UsageError(f"{option} must be at least {least}, not {number}")


def cache_at(folder: Path | None) -> Cache:
    """The cache of models in the cache folder `folder`, or in the default one."""
    return Cache(None if folder is None else folder / "models")
