"""Man pages, generated from the parser."""

import re
from typing import Any

from intloom.cli.commands import COMMANDS
from intloom.common.errors import ExitCode
from intloom.manual.commands import MEANINGS, parsed_command


def man_page(name: str) -> str:
    """The man page of a subcommand in roff, or of `intloom` itself for an empty name."""
    title = f"intloom-{name}" if name else "intloom"
    summary = COMMANDS[name] if name else "int8 accelerator for neural networks: generator, compiler, co-simulation"
    head = f'.TH "{title.upper()}" "1" "" "Intloom" "User Commands"\n.SH NAME\n'
    head += f"{title} \\- {_escape(summary.rstrip('.'))}\n"
    if not name:
        rows = [f".TP\n.BR intloom-{n} (1)\n{_escape(text)}\n" for n, text in COMMANDS.items()]
        codes = [f".TP\n.B {c.value}\n{_escape(MEANINGS[c])}\n" for c in ExitCode]
        usage = ".SH SYNOPSIS\n.B intloom\n[\\-v|\\-vv|\\-q] COMMAND ...\n.br\n.B intloom \\-\\-version\n"
        return f"{head}{usage}.SH COMMANDS\n{''.join(rows)}.SH EXIT STATUS\n{''.join(codes)}"
    return head + _described(f"intloom {name}", parsed_command(name), ".SH")


def _described(path: str, command: Any, heading: str) -> str:
    subcommands = getattr(command, "commands", None)
    text = f"{heading} {'DESCRIPTION' if heading == '.SH' else path}\n{_paragraphs(command.help or '')}"
    if subcommands:
        return text + "".join(_described(f"{path} {n}", sub, ".SS") for n, sub in subcommands.items())
    rows = [_parameter(p) for p in command.params if p.name != "help"]
    return f"{text}{'.SH OPTIONS' if heading == '.SH' else '.PP'}\n{''.join(rows)}" if rows else text


def _parameter(parameter: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    names = parameter.metavar or parameter.name.upper() if is_argument else ", ".join(parameter.opts)
    if not is_argument and parameter.metavar and not getattr(parameter, "is_flag", False):
        names += f" {parameter.metavar}"
    return f".TP\n.B {_escape(names)}\n{_escape(parameter.help or '')}\n"


def _paragraphs(text: str) -> str:
    parts = []
    for part in text.strip().split("\n\n"):
        flat = " ".join(part.split())
        example = re.fullmatch(r"\[bold\](.*)\[/bold\]", flat)
        parts.append(f".PP\n.B {_escape(example[1])}\n" if example else f".PP\n{_escape(_plain(flat))}\n")
    return "".join(parts)


def _plain(text: str) -> str:
    return re.sub(r"\[/?bold\]", "", text)


def _escape(text: str) -> str:
    """Text in which roff sees no request and no escape."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
