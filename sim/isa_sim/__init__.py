"""Executes programs instruction by instruction on a memory image, as the accelerator would, and watches for its faults."""

from .simulator import IsaSimulator

__all__ = ["IsaSimulator"]
