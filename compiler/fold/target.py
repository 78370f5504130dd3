"""Targets: the unit of the accelerator, or the host, that a node of the model runs on."""

from enum import StrEnum


class Target(StrEnum):
    """What runs a node of the model."""

    ARRAY = "array"
    VECTOR = "vector"
    TABLE = "table"
    PLACEMENT = "placement"
    HOST = "host"
    UNSUPPORTED = "unsupported"
