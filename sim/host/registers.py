"""Access to the accelerator's register port."""

from typing import Protocol


class Registers(Protocol):
    """The registers of `intloom.hw.spec.regs` by name; each call is one bus access."""

    async def read(self, name: str) -> int:
        """Value of the register."""

    async def write(self, name: str, value: int) -> None:
        """Set the register."""
