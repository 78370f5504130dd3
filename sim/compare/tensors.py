"""Compares tensors byte for byte. There is no tolerance: integers are equal or they are not."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import MismatchError
from intloom.sim.checks import GOLDEN, Check
from intloom.sim.result import Arrays


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison."""

    checks: tuple[Check, ...]

    @property
    def compared_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(c.bytes for c in self.checks)

    @property
    def differing_bytes(self) -> int:
        """How many of them differ."""
        return sum(c.mismatches for c in self.checks)

    @property
    def differences(self) -> list[str]:
        """Each tensor that differs, in words."""
        return [str(c) for c in self.checks if c.mismatches]

    def require_equal(self) -> None:
        """Raise `MismatchError` that names every differing tensor."""
        if self.differences:
            raise MismatchError("\n  ".join(["all bytes must be equal, but:", *self.differences]))


def compare(expected: Arrays, got: Arrays) -> Comparison:
    """Compare all tensors of `expected` with those of `got`; a missing tensor or another shape is an error at once."""
    if set(expected) != set(got):
        raise MismatchError(f"a run must give tensors {sorted(expected)}, not {sorted(got)}")
    for name, array in expected.items():
        if array.shape != got[name].shape or array.dtype != got[name].dtype:
            raise MismatchError(
                f"tensor {name!r} must be {array.dtype} {array.shape}, not {got[name].dtype} {got[name].shape}: "
                "the two sides ran different programs"
            )
    return Comparison(tuple(compare_tensor(name, "", GOLDEN, got[name], array) for name, array in expected.items()))


def compare_tensor(tensor: str, layer: str, against: str, got: NDArray[Any], expected: NDArray[Any]) -> Check:
    """Compare two arrays of the same shape element by element."""
    different = got != expected
    count = int(np.count_nonzero(different))
    if not count:
        return Check(tensor, layer, against, got.size, 0)
    at = tuple(int(i) for i in np.argwhere(different)[0])
    wanted, actual = int(expected[at]), int(got[at])
    first = f"at {list(at)}: expected {wanted}, got {actual}"
    return Check(tensor, layer, against, got.size, count, first, at, wanted, actual)
