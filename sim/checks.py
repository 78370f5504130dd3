"""The result of comparing one tensor with a reference."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

GOLDEN = "golden"
ONNXRUNTIME = "onnxruntime"


@dataclass(frozen=True)
class Check:
    """One tensor against one reference."""

    tensor: str
    layer: str
    """The layer that produces the tensor; empty for a tensor that no layer produces."""
    against: str
    bytes: int
    mismatches: int
    """Differing bytes without an attribution."""
    first: str = ""
    """Position of the first difference, and the two values."""
    attributed: int = 0
    """Differing bytes attributed to onnxruntime's float kernels; see `intloom.flow.float_kernels`."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)
