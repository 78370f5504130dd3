"""Access to the memory that host and accelerator share."""

from typing import Protocol


class Memory(Protocol):
    """The shared memory, addressed in bytes from its base."""

    def read(self, address: int, length: int) -> bytes:
        """The `length` bytes from `address` on."""

    def write(self, address: int, data: bytes) -> None:
        """Store `data` from `address` on."""
