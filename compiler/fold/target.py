"""Targets: where a node of the model runs."""

from __future__ import annotations

from enum import StrEnum


class Target(StrEnum):
    """Where a node of the model ends up."""

    ARRAY = "array"
    VECTOR = "vector"
    TABLE = "table"
    PLACEMENT = "placement"
    HOST = "host"
    UNSUPPORTED = "unsupported"
