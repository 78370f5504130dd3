"""Compares output tensors byte for byte. There is no tolerance: integers are equal or they are not."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import MismatchError
from intloom.sim.result import Arrays


@dataclass(frozen=True)
class Mismatch:
    """The differences of one tensor; channel, y and x are those of its first differing value."""

    tensor: str
    count: int
    size: int
    channel: int
    y: int
    x: int
    expected: int
    got: int

    def __str__(self) -> str:
        return (
            f"tensor {self.tensor!r}: {self.count} of {self.size} values differ, first at channel {self.channel}, "
            f"y {self.y}, x {self.x}: expected {self.expected}, got {self.got}"
        )


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison."""

    expected: str
    got: str
    compared_bytes: int
    differing_bytes: int
    mismatches: tuple[Mismatch, ...]

    @property
    def equal(self) -> bool:
        """Whether every byte was equal."""
        return not self.mismatches

    def require_equal(self) -> None:
        """Raise `MismatchError` that names every differing tensor."""
        if self.mismatches:
            lines = "\n".join(f"  {m}" for m in self.mismatches)
            raise MismatchError(f"{self.got} must equal {self.expected} byte for byte, but:\n{lines}")


def compare(expected: Arrays, got: Arrays, *, expected_name: str = "golden", got_name: str = "rtl") -> Comparison:
    """Compare all tensors of `expected` with those of `got`; a missing tensor or another shape is an error at once."""
    if set(expected) != set(got):
        raise MismatchError(
            f"{got_name} must give tensors {sorted(expected)} as {expected_name} does, not {sorted(got)}"
        )
    mismatches = [m for name in expected if (m := _difference(name, expected[name], got[name])) is not None]
    total = sum(a.nbytes for a in expected.values())
    return Comparison(expected_name, got_name, total, sum(m.count for m in mismatches), tuple(mismatches))


def _difference(name: str, expected: NDArray[np.int8], got: NDArray[np.int8]) -> Mismatch | None:
    if expected.shape != got.shape or expected.dtype != got.dtype:
        raise MismatchError(
            f"tensor {name!r} must be {expected.dtype} {expected.shape}, not {got.dtype} {got.shape}: "
            "the two sides ran different programs"
        )
    positions = np.argwhere(expected != got)
    if not len(positions):
        return None
    _, channel, y, x = (int(v) for v in positions[0])
    at = tuple(positions[0])
    return Mismatch(name, len(positions), expected.size, channel, y, x, int(expected[at]), int(got[at]))
