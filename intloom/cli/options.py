"""Options shared by several subcommands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from intloom.cli.console import Terminal
from intloom.common.cache.models import ModelCache
from intloom.common.errors import UsageError
from intloom.hw.spec.params import PRESETS

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
CacheFolder = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Cache folder. Default: INTLOOM_CACHE, or the user's cache folder."),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset", metavar="P", help=f"Hardware preset: {', '.join(PRESETS)}.", autocompletion=lambda: [*PRESETS]
    ),
]
PresetName = Annotated[
    str, typer.Option("--preset", metavar="P", help="Hardware preset.", autocompletion=lambda: [*PRESETS])
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="TOML file with hardware parameters, or a preset and changes to it."),
]
Dims = Annotated[
    list[str] | None, typer.Option("--dim", metavar="NAME=N", help="Size of an open dimension. Repeatable.")
]


def zoo_names() -> list[str]:
    """Names of the zoo's networks, for completion."""
    from intloom.zoo import ZOO

    return [*ZOO]


def terminal_of(context: typer.Context) -> Terminal:
    """The terminal opened by the entry point."""
    return context.ensure_object(Terminal)


def check_least(option: str, number: int | None, least: int) -> None:
    """Raise an error if the value of an option is below its minimum."""
    if number is not None and number < least:
        raise UsageError(f"{option} must be at least {least}, not {number}")


def parse_dims(words: list[str] | None) -> dict[str, int]:
    """A mapping from the `NAME=N` words of --dim."""
    sizes = {}
    for word in words or ():
        name, _, number = word.rpartition("=")
        if not name or not number.isdigit() or int(number) < 1:
            raise UsageError(f"--dim must be NAME=N with N of at least 1, not {word!r}")
        sizes[name] = int(number)
    return sizes


def cache_at(folder: Path | None) -> ModelCache:
    """The model cache in the cache folder `folder`, or in the default one."""
    return ModelCache(None if folder is None else folder / "models")


def choice(name: str, values: Iterable[str]) -> Any:
    """An enumeration of registered names: Typer 0.29 offers no other type with choices known only when it runs."""
    make: Any = StrEnum
    return make(name, {value.upper(): value for value in values})


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each dataclass parameter replaced by one option per field.

    Typer 0.29 reads options from the signature only, so the signature is rewritten, and the dataclasses are made from
    the options' values at each call.
    """
    hints = get_type_hints(command, include_extras=True)
    names = list(inspect.signature(command).parameters)
    groups = {n: hints[n] for n in names if is_dataclass(hints[n])}

    @wraps(command)
    def run(**values: Any) -> None:
        made = {n: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for n, kind in groups.items()}
        command(**values, **made)

    parameters = [p for n in names for p in (_options(groups[n]) if n in groups else [_parameter(command, n, hints)])]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect.signature looks for
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _options(group: Any) -> list[inspect.Parameter]:
    """A parameter for each field of an option dataclass; every field has a default."""
    hints = get_type_hints(group, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(f.name, keyword, default=f.default, annotation=hints[f.name]) for f in fields(group)]


def _parameter(command: Callable[..., None], name: str, hints: dict[str, Any]) -> inspect.Parameter:
    own = inspect.signature(command).parameters[name]
    return own.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
