"""What all monitors share: the broken rule as an error, and sampling of signals at clock edges."""

from typing import Any


class ProtocolViolation(AssertionError):
    """An interface broke one of its rules; the message names interface, rule and values."""


def sample(signal: Any) -> int:
    """The signal's value; undefined bits break the rule that outputs are always defined."""
    value = signal.value
    if not value.is_resolvable:
        raise ProtocolViolation(f"{signal._name} must be defined after reset, not {value}")
    return int(value)
