"""Executes programs instruction by instruction on a memory image, and watches for what hardware would trip over."""

from intloom.common.discovery import import_submodules
from intloom.sim.isa_sim.simulator import IsaSimulator

__all__ = ["IsaSimulator"]

import_submodules(__name__)
