"""The simulated system on a chip: firmware, memory contents, run."""

from intloom.soc.firmware import Check, build_firmware
from intloom.soc.system import run_firmware

__all__ = ["Check", "build_firmware", "run_firmware"]
