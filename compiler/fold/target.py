"""Targets: the unit of the accelerator, or the host, that a node of the model runs on."""

from enum import StrEnum
from typing import NamedTuple

from intloom.compiler.refusals import Refusal


class Target(StrEnum):
    """What runs a node of the model."""

    ARRAY = "array"
    VECTOR = "vector"
    TABLE = "table"
    PLACEMENT = "placement"
    HOST = "host"
    UNSUPPORTED = "unsupported"


class Finding(NamedTuple):
    """The target of a node, and where this is the host, the reason and what to change."""

    target: Target
    reason: str = ""
    remedy: str = ""
    refusal: Refusal | None = None
