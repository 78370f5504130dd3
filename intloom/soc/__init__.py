"""The simulated system on a chip: firmware, memory contents, run."""

from intloom.soc.firmware import Check, build_firmware
from intloom.soc.system import SocRun, run_system

__all__ = ["Check", "SocRun", "build_firmware", "run_system"]
