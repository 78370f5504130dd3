"""Entry point: runs the subcommand, and converts every error into a message of one line and an exit code."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer
from typer.exceptions import TyperException

from intloom.cli.commands import build_app
from intloom.cli.console import Terminal, close_terminal, open_terminal
from intloom.cli.interrupt import Interruption, end_children, prompt_interrupt
from intloom.common.errors import ExitCode, IntloomError, UnsupportedError
from intloom.common.temporary_files import remove_abandoned

_VERBOSITY = {"-v": 1, "-vv": 2, "--verbose": 1, "-q": -1, "--quiet": -1}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words, verbosity = _take_verbosity(sys.argv[1:] if arguments is None else arguments)
    _open_closed_streams()
    terminal = open_terminal(verbosity, words)
    remove_abandoned()
    try:
        with prompt_interrupt() as interruption:
            return _run_command(words, terminal, interruption)
    except KeyboardInterrupt as interrupt:
        # The signal came before the command began, or after its end.
        return _report(interrupt, terminal)
    finally:
        close_terminal()


def _run_command(words: list[str], terminal: Terminal, interruption: Interruption) -> int:
    try:
        command = typer.main.get_command(build_app(words))
        result = command.main(args=words or ["--help"], prog_name="intloom", standalone_mode=False, obj=terminal)
        sys.stdout.flush()
        if result == ExitCode.INTERRUPTED:
            # Typer catches the KeyboardInterrupt of a command and returns this code instead.
            return _report(KeyboardInterrupt(), terminal)
        return int(result or ExitCode.OK)
    except BaseException as error:  # noqa: BLE001  # the only conversion of errors to exit codes
        return _report(KeyboardInterrupt() if interruption.received else error, terminal)


def _open_closed_streams() -> None:
    """Open the null device for standard streams that the caller closed (`>&-`), which are None in Python."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def _take_verbosity(arguments: Sequence[str]) -> tuple[list[str], int]:
    """Remove -v and -q from the words before a bare `--`; return the other words and the verbosity."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    level = sum(_VERBOSITY.get(w, 0) for w in words[:end])
    kept = [w for w in words[:end] if w not in _VERBOSITY]
    return kept + words[end:], max(-1, min(2, level))


def _report(error: BaseException, terminal: Terminal) -> int:
    code, text = _classify(error)
    if terminal.verbosity >= 2:
        traceback.print_exception(error)
    if code in (ExitCode.INTERRUPTED, ExitCode.SIMULATION):
        end_children()
    if text:
        # One line, even if the text of the error has several.
        sys.stderr.write(f"intloom: {' '.join(text.split())}\n")
    return int(code)


def _classify(error: BaseException) -> tuple[int, str]:
    """The exit code and the message for an error."""
    if isinstance(error, IntloomError):
        row = f" (row {error.row} of docs/refusals.md)" if isinstance(error, UnsupportedError) else ""
        return error.exit_code, f"error: {error}{row}"
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return ExitCode.INTERRUPTED, "interrupted"
    if isinstance(error, TyperException):
        return ExitCode.USAGE, f"error: {_usage(error)}"
    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):
        # Typer converts a BrokenPipeError into SystemExit.
        error = error.__context__
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else ExitCode.OK
        return code, ""
    if isinstance(error, BrokenPipeError):
        # The reader of standard output closed the pipe, as `head` does: discard the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return ExitCode.OK, ""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
        return (
            ExitCode.DISK,
            f"error: {error.strerror}: {error.filename or 'output'}; free disk space or choose another folder",
        )
    if isinstance(error, OSError) and error.filename is not None:
        return ExitCode.BAD_FILE, f"error: {error.strerror}: {error.filename}"
    if isinstance(error, MemoryError):
        return ExitCode.ENVIRONMENT, "error: not enough memory; close other programs or use a smaller model"
    return (
        ExitCode.INTERNAL,
        f"internal error: {type(error).__name__}: {error}; run again with -vv and report the output",
    )


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "intloom"
    return f"{error.format_message().rstrip('.')}; see {path} --help"
