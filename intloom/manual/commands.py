"""Command-line page, generated from the parser."""

import re
from enum import Enum
from typing import Any

import typer

from intloom.cli.commands import COMMANDS, add_subcommand
from intloom.common.errors import ExitCode

_HEAD = """# Command line

*`python -m intloom.manual` generates this page from the parser.*

`-v` (more messages), `-q` (fewer messages) and `-vv` (with tracebacks) are allowed before and after any subcommand.
Results go to standard output, everything else to standard error. `intloom --install-completion` installs shell
completion.
"""
MEANINGS = {
    ExitCode.OK: "success",
    ExitCode.MISMATCH: "two results that must be equal differ",
    ExitCode.USAGE: "invalid usage: wrong options, names, shapes or types",
    ExitCode.BAD_FILE: "a file is missing, truncated, altered or of another kind",
    ExitCode.UNSUPPORTED: "a valid model uses something that Intloom does not support",
    ExitCode.BAD_PARAMETERS: "hardware parameters contradict each other, or a graph does not fit them",
    ExitCode.ENVIRONMENT: "a tool is missing or too old; `intloom doctor` tells how to install it",
    ExitCode.WRONG_HARDWARE: "a program made for other hardware or another instruction set version",
    ExitCode.SIMULATION: "the simulated hardware stopped with an error, hung, or its simulator died",
    ExitCode.DISK: "a file could not be written",
    ExitCode.INTERNAL: "internal error of Intloom; report it with the output of -vv",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C or SIGTERM",
}
"""What each exit code means."""


def command_page() -> str:
    """The page's text."""
    parts = [_HEAD, "\n## Exit codes\n\n| code | meaning |\n|---|---|\n"]
    parts += [f"| {code.value} | {MEANINGS[code]} |\n" for code in ExitCode]
    for name in COMMANDS:
        parts.append(_describe(f"intloom {name}", parsed_command(name)))
    return "".join(parts)


def parsed_command(name: str) -> Any:
    """The parser of a subcommand."""
    app = typer.Typer(name="intloom")
    add_subcommand(app, name)
    app.callback()(_nothing)  # Typer turns an application with a single command into that command
    group: Any = typer.main.get_command(app)
    return group.commands[name]


def _nothing() -> None:
    """Empty callback."""


def _describe(path: str, command: Any) -> str:
    subcommands = getattr(command, "commands", None)
    text = f"\n## {path}\n\n{_markdown(command.help or '')}\n"
    if subcommands:
        for name, sub in subcommands.items():
            text += _describe(f"{path} {name}", sub).replace("\n## ", "\n### ")
        return text
    rows = [_row(p) for p in command.params if p.name != "help"]
    return f"{text}\n| argument or option | default | meaning |\n|---|---|---|\n{''.join(rows)}" if rows else text


def _row(parameter: Any) -> str:
    names = ", ".join(f"`{o}`" for o in parameter.opts)
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    elif not getattr(parameter, "is_flag", False) and parameter.metavar:
        names += f" `{parameter.metavar}`"
    annotation = parameter.type_descriptor.annotation
    choices = list(annotation) if isinstance(annotation, type) and issubclass(annotation, Enum) else []
    meaning = getattr(parameter, "help", "") or ""
    if choices:
        meaning += " One of " + ", ".join(f"`{c.value}`" for c in choices) + "."
    default = "required" if parameter.required else _default(parameter)
    return f"| {names} | {default} | {meaning} |\n".replace("[=", "&#91;=")


def _default(parameter: Any) -> str:
    value = parameter.default
    if value is None or value is False or callable(value):
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _markdown(text: str) -> str:
    """Help text with its examples as code blocks."""
    cleaned = re.sub(r"(?s)\[bold\](.*?)\[/bold\]", lambda m: f"\n\n    {' '.join(m[1].split())}\n\n", text)
    return re.sub(r"\n{3,}", "\n\n", cleaned).strip()
