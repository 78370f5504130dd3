"""Options shared by several subcommands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import OptionInfo

from intloom.cli.console import Terminal
from intloom.common.errors import UsageError

_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
CacheFolder = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Cache folder. Default: INTLOOM_CACHE, or the user's cache folder."),
]
Dims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        "--shape",
        metavar="NAME=N",
        help="Size of an open dimension, or sizes of an input such as images=1,3,320,640. Repeatable.",
    ),
]


def zoo_names() -> list[str]:
    """Names of the zoo's networks, for completion."""
    from intloom.zoo import ZOO

    return [*ZOO]


def check_least(option: str, number: int | None, least: int) -> None:
    """Raise an error if the value of an option is below its minimum."""
    if number is not None and number < least:
        raise UsageError(f"{option} must be at least {least}, not {number}")


def parse_dims(words: list[str] | None) -> dict[str, int]:
    """A mapping from the `NAME=N` and `INPUT=N,N,...` words of --dim and --shape; an axis has the name `input.axis`."""
    sizes: dict[str, int] = {}
    for word in words or ():
        name, _, text = word.rpartition("=")
        numbers = text.split(",")
        if not name or not all(n.isdecimal() and n.isascii() and int(n) > 0 for n in numbers):
            raise UsageError(f"--dim must be NAME=N, and --shape INPUT=N,N,..., with sizes of at least 1, not {word!r}")
        sizes |= {name if len(numbers) == 1 else f"{name}.{axis}": int(n) for axis, n in enumerate(numbers)}
    return sizes


def choice(name: str, values: Iterable[str]) -> Any:
    """An enumeration of registered names: Typer 0.29 offers no other type with choices known only when it runs."""
    make: Any = StrEnum
    return make(name, {value.upper(): value for value in values})


@dataclass(frozen=True)
class FieldOptions:
    """Options for the fields of a dataclass of another package, by field; a field without one keeps its default.

    An option has the type of its field, unless it is annotated with another one.
    """

    options: Mapping[str, Any]


@dataclass(frozen=True)
class _Group:
    """A dataclass that is made from options."""

    kind: Any
    options: Mapping[str, Any]
    """The annotation of each field with an option of its own."""
    groups: Mapping[str, _Group]
    """The fields that are groups themselves."""

    def parameters(self) -> list[inspect.Parameter]:
        """One for each option."""
        defaults = {f.name: inspect.Parameter.empty if f.default is MISSING else f.default for f in fields(self.kind)}
        keyword = inspect.Parameter.KEYWORD_ONLY
        made = []
        for name in (f.name for f in fields(self.kind)):
            if name in self.groups:
                made += self.groups[name].parameters()
            elif name in self.options:
                made.append(inspect.Parameter(name, keyword, default=defaults[name], annotation=self.options[name]))
        return made

    def make(self, values: dict[str, Any]) -> Any:
        """The dataclass from the options' values, which are removed from `values`."""
        own = {name: values.pop(name) for name in self.options}
        return self.kind(**own, **{name: group.make(values) for name, group in self.groups.items()})


def _group(hint: Any) -> _Group | None:
    """The group that an annotation stands for, or None for an option or an argument."""
    given = next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, FieldOptions)), None)
    kind = hint if given is None else hint.__origin__
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return None
    hints = get_type_hints(kind, include_extras=True)
    if given is not None:
        annotated: Any = Annotated
        hints = {n: annotated[hints[n], o] if isinstance(o, OptionInfo) else o for n, o in given.options.items()}
    groups = {name: group for name, h in hints.items() if (group := _group(h)) is not None}
    return _Group(kind, {name: h for name, h in hints.items() if name not in groups}, groups)


SUBCOMMANDS: dict[str, tuple[str, Callable[..., None]]] = {}
"""Help text and function of the subcommands whose modules are imported; those of a group have two words as name."""


def subcommand(name: str, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function of a terminal and of arguments and options as the subcommand `name`."""

    def register(command: Callable[..., None]) -> Callable[..., None]:
        SUBCOMMANDS[name] = text, _called_by_typer(command)
        return command

    return register


def _called_by_typer(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the context for its terminal, one option per field for each dataclass parameter, and --json.

    Fields may be such dataclasses themselves. Typer 0.29 reads options from the signature only, so the signature is
    rewritten, and the dataclasses are made from the options' values at each call.
    """
    hints = get_type_hints(command, include_extras=True)
    _, *own = inspect.signature(command).parameters.values()
    groups = {p.name: group for p in own if (group := _group(hints[p.name])) is not None}

    @wraps(command)
    def run(context: typer.Context, *, as_json: bool, **values: Any) -> None:
        made = {n: group.make(values) for n, group in groups.items()}
        command(replace(context.ensure_object(Terminal), as_json=as_json), **values, **made)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    for p in own:
        grouped = p.name in groups
        parameters += groups[p.name].parameters() if grouped else [p.replace(kind=keyword, annotation=hints[p.name])]
    parameters.append(inspect.Parameter("as_json", keyword, default=False, annotation=_Json))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect.signature looks for
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
