"""Every error the project raises on purpose, and the exit code each one ends the command line with.

One base class, so that the command line needs one `except`. A message names the thing, what it must be,
what it was and what to do; the classes below only say which kind of thing was wrong.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line; they are part of its interface and never change meaning."""

    OK = 0
    MISMATCH = 1
    USAGE = 2
    BAD_FILE = 3
    UNSUPPORTED = 4
    BAD_PARAMETERS = 5
    ENVIRONMENT = 6
    WRONG_HARDWARE = 7
    SIMULATION = 8
    DISK = 9
    INTERNAL = 70
    INTERRUPTED = 130


class IntloomError(Exception):
    """Base of every deliberate error; `exit_code` is what the command line returns for it."""

    exit_code: ExitCode = ExitCode.INTERNAL


class MismatchError(IntloomError):
    """Two results that must be equal differ."""

    exit_code = ExitCode.MISMATCH


class UsageError(IntloomError):
    """A call or option that cannot be meant: wrong input names, shapes or types."""

    exit_code = ExitCode.USAGE


class FileFormatError(IntloomError):
    """A file that is missing, truncated, altered or of another kind."""

    exit_code = ExitCode.BAD_FILE


class ModelError(IntloomError):
    """A model that breaks the rules of its own format."""

    exit_code = ExitCode.BAD_FILE


class UnsupportedError(IntloomError):
    """A valid model that asks for something this product does not do."""

    exit_code = ExitCode.UNSUPPORTED


class ParameterError(IntloomError):
    """Hardware parameters that contradict themselves or each other."""

    exit_code = ExitCode.BAD_PARAMETERS


class CapacityError(ParameterError):
    """A graph that does not fit the memories of the chosen hardware."""


class EncodingError(IntloomError):
    """An instruction field, register value or quantisation constant out of its range."""

    exit_code = ExitCode.BAD_PARAMETERS


class EnvironmentFault(IntloomError):
    """A tool or package that the job needs is missing or too old."""

    exit_code = ExitCode.ENVIRONMENT


class HardwareMismatchError(IntloomError):
    """A program made for other hardware or for another instruction set version."""

    exit_code = ExitCode.WRONG_HARDWARE


class SimulationError(IntloomError):
    """The simulated hardware stopped with an error, hung, or its simulator died."""

    exit_code = ExitCode.SIMULATION


class ProgramError(IntloomError):
    """A program that breaks a rule of the machine: a race, a bad address, a wait that cannot end."""

    exit_code = ExitCode.SIMULATION


class DiskError(IntloomError):
    """A file could not be written: no space, no permission."""

    exit_code = ExitCode.DISK
