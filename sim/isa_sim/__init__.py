"""Executes programs instruction by instruction on a memory image, and watches for what hardware would trip over."""

from intloom.sim.isa_sim.simulator import IsaSimulator

__all__ = ["IsaSimulator"]
