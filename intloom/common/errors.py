"""Exceptions of the project and the command line's exit code for each of them.

All derive from `IntloomError`. A message states what was found, what is allowed and what to do. The class states the
kind of error.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """Exit codes of the command line. They are a stable interface."""

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
    """Base class; `exit_code` is the command line's exit code."""

    exit_code: ExitCode = ExitCode.INTERNAL

    def __reduce__(self) -> tuple[Callable[..., IntloomError], tuple[Any, ...], dict[str, Any]]:
        """As between processes: the fields come back without a call of `__init__`, whose arguments may be others."""
        return _without_init, (type(self), *self.args), self.__dict__


def _without_init(kind: type[IntloomError], *args: Any) -> IntloomError:
    return kind.__new__(kind, *args)


class MismatchError(IntloomError):
    """Two results that must be equal differ. The fields describe the first difference, as far as it is known."""

    exit_code = ExitCode.MISMATCH

    def __init__(
        self,
        message: str,
        *,
        layer: str = "",
        node: str = "",
        tensor: str = "",
        coordinate: tuple[int, ...] = (),
        expected: int | None = None,
        got: int | None = None,
        instruction: int | None = None,
        cycle: int | None = None,
    ) -> None:
        super().__init__(message)
        self.layer, self.node, self.tensor, self.coordinate = layer, node, tensor, coordinate
        self.expected, self.got, self.instruction, self.cycle = expected, got, instruction, cycle


class UsageError(IntloomError):
    """Invalid usage: wrong options, input names, shapes or types."""

    exit_code = ExitCode.USAGE


class FileFormatError(IntloomError):
    """A file that is missing, truncated, altered or in another format."""

    exit_code = ExitCode.BAD_FILE


class ModelError(IntloomError):
    """A model that violates its own format."""

    exit_code = ExitCode.BAD_FILE


class UnsupportedError(IntloomError):
    """A valid model that uses an unsupported feature; `row` is its number in the list of refusals."""

    exit_code = ExitCode.UNSUPPORTED

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


class ParameterError(IntloomError):
    """Invalid or contradictory hardware parameters."""

    exit_code = ExitCode.BAD_PARAMETERS


class CapacityError(ParameterError):
    """A graph that does not fit the memories of the chosen hardware."""


class EncodingError(IntloomError):
    """An instruction field, register value or quantization constant out of its range."""

    exit_code = ExitCode.BAD_PARAMETERS


class EnvironmentFault(IntloomError):
    """A required tool or package is missing or too old."""

    exit_code = ExitCode.ENVIRONMENT


class HardwareMismatchError(IntloomError):
    """A program compiled for other hardware or another instruction set version."""

    exit_code = ExitCode.WRONG_HARDWARE


class SimulationError(IntloomError):
    """The simulated hardware stopped with an error or hung, or the simulator crashed."""

    exit_code = ExitCode.SIMULATION


class ProgramError(IntloomError):
    """A program that violates an execution rule: a race, an address out of range, a deadlock."""

    exit_code = ExitCode.SIMULATION


class DiskError(IntloomError):
    """A file could not be written: no space, no permission."""

    exit_code = ExitCode.DISK
