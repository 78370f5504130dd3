"""Tensors that stay in the scratchpad between stages: whole, or the rows that are still needed in a ring buffer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from intloom.compiler.schedule.geometry import Buffer, Tile
from intloom.compiler.schedule.stage import Stage


@dataclass(eq=False)
class LocalBuffer:
    """Blocks `first` to `first + blocks` of a buffer, of which the scratchpad holds the last `rows` rows."""

    buffer: Buffer
    first: int
    blocks: int
    rows: int
    row: int
    """Words from one row to the next."""
    guard: int = 0
    """Words before and after a packed image, since the array also reads the neighboring word."""
    stored: frozenset[int] = frozenset()
    """Blocks that are also written to DRAM."""
    loaded: list[tuple[int, int]] = field(default_factory=list)
    """Blocks that come from DRAM, as (first, count)."""
    first_reader: Stage | None = None
    """The stage before which blocks from DRAM are loaded, if the buffer is whole."""
    address: int = -1

    @property
    def whole(self) -> bool:
        """Whether all rows are in the scratchpad."""
        return self.rows == self.buffer.height

    @property
    def words(self) -> int:
        """Scratchpad words."""
        return self.blocks * self.rows * self.row + 2 * self.guard

    def tile(self, block: int) -> Tile:
        """The tile that starts at a block of the buffer."""
        plane = self.rows * self.row
        base = self.address + self.guard + (block - self.first) * plane
        return Tile(base, plane, self.row, 0, 0, 0 if self.whole else self.rows)

    def pieces(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Rows `low` to `high` (half-open), cut where the ring wraps."""
        while low < high:
            stop = min(high, (low // self.rows + 1) * self.rows)
            yield low, stop
            low = stop
