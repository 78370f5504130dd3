"""A part of the weights of a chunk, from the constant image or from a tensor in DRAM."""

from __future__ import annotations

from dataclasses import dataclass

from intloom.compiler.schedule.geometry import Buffer
from intloom.hw.spec.isa import Target


@dataclass(frozen=True)
class WeightPart:
    """A strided move to the weight memory: the tuples count words of a run, runs of a plane, and planes."""

    source: Buffer | None
    """A tensor in DRAM; None: the constant image."""
    first: int
    """First word in the source."""
    local: int
    """First word in the chunk's weights."""
    counts: tuple[int, int, int]
    source_steps: tuple[int, int]
    local_steps: tuple[int, int]

    def fields(self, address: int, ring: int, image_at: int) -> dict[str, int]:
        """Fields of the LOAD into weights at `address`, in a weight memory of `ring` words."""
        base = image_at if self.source is None else self.source.address
        return {
            "dram": base + self.first,
            "local": (address + self.local) % ring,
            **dict(zip(("n0", "n1", "n2"), self.counts, strict=True)),
            **dict(zip(("dram_s1", "dram_s2"), self.source_steps, strict=True)),
            **dict(zip(("local_s1", "local_s2"), self.local_steps, strict=True)),
            "target": Target.WEIGHT,
        }
