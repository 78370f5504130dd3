"""Loop nest over a strip's weight tiles, used by the weight fetcher and the tile planner."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

LAST_INDICES = data.StructLayout({"row": 4, "column": 4, "block": 12})
"""Last index of each loop, counted from 0."""


class Tap(NamedTuple):
    """A tile's index in its strip: kernel row and column, input block."""

    row: int
    column: int
    block: int


def taps(bounds: Mapping[str, int]) -> Iterator[Tap]:
    """The tiles of a strip, in order."""
    counts = (bounds["kernel_h"], bounds["kernel_w"], bounds["in_blocks"])
    yield from (Tap(*index) for index in product(*map(range, counts)))


def last_tile_indices(bounds: Any) -> dict[str, Any]:
    """The members of `LAST_INDICES`, from loop bounds in a mapping or a view."""
    return {
        "row": bounds["kernel_h"] - 1,
        "column": bounds["kernel_w"] - 1,
        "block": bounds["in_blocks"] - 1,
    }


class TileLoops(wiring.Component):
    """Counters for kernel row, kernel column and input block; the last one is the innermost.

    Members
    -------
    last_indices:
        Each loop's last index.
    step:
        Advance to the next tile; after the last one, to the first.
    block_end, column_end, last:
        This tile is the last of the innermost loop; of the two innermost; of all.
    first:
        This tile is the first of all.

    Handshake
    ---------
    `step` is a strobe. The outputs are combinational in the counters.

    Timing
    ------
    One tile a cycle; outputs change in the cycle after `step`.

    Requirements
    ------------
    `last_indices` is stable while the nest is walked.

    Reset and faults
    ----------------
    Soft reset returns to the first tile. There are no faults.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "last_indices": In(LAST_INDICES),
                "step": In(1),
                "block_end": Out(1),
                "column_end": Out(1),
                "last": Out(1),
                "first": Out(1),
            }
        )

    @staticmethod
    def model(bounds: Mapping[str, int]) -> Iterator[dict[str, bool]]:
        """The outputs for each tile, in order."""
        *_, final = taps(bounds)
        for tap in taps(bounds):
            yield {
                "block_end": tap[2:] == final[2:],
                "column_end": tap[1:] == final[1:],
                "last": tap == final,
                "first": not any(tap),
            }

    def elaborate(self, platform: object) -> Module:
        """Three counters; each advances when all inner ones end."""
        m = Module()
        block, column, row = Signal(12), Signal(4), Signal(4)
        ends = (self.block_end, self.column_end, self.last)
        last_indices = (
            block == self.last_indices.block,
            column == self.last_indices.column,
            row == self.last_indices.row,
        )
        reached = self.step
        within = None
        for counter, end, last in zip((block, column, row), ends, last_indices, strict=True):
            m.d.comb += end.eq(last if within is None else last & within)
            with m.If(reached):
                m.d.sync += counter.eq(counter + 1)
                with m.If(last):
                    m.d.sync += counter.eq(0)
            reached, within = self.step & end, end
        m.d.comb += self.first.eq(~(block.any() | column.any() | row.any()))
        return m
