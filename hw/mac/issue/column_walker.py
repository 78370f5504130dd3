"""Column walker: the order of the words of a depthwise tile, and the output pixels whose sums they complete."""

from collections.abc import Iterator, Mapping

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.down_counter import DownCounter
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams

REACH_BITS = 8
"""Width of the distance from a kernel's first to its last row or column, counted from 1."""
_CONV = BY_KIND[Kind.CONV]


def columns_layout(params: HardwareParams) -> data.StructLayout:
    """A tile: reach of the kernel, least words of a column, strides, and the size of the output."""
    return data.StructLayout(
        {
            "reach_h": REACH_BITS,
            "reach_w": REACH_BITS,
            "column_rows": _CONV.field("in_blocks").width,
            "stride_h": _CONV.field("stride_h").width,
            "stride_w": _CONV.field("stride_w").width,
            "out_h": params.strip.bit_length(),
            "out_w": params.strip.bit_length(),
        }
    )


class ColumnWalker(wiring.Component):
    """Walks the columns of a depthwise tile from left to right, each from top to bottom.

    Members
    -------
    start:
        Pulse: the next word is the first one of a tile.
    columns:
        Sizes of the tile; see `columns_layout`.
    step:
        Pulse: the current word issues. After the last word of a tile, the first one of another such tile follows.
    sum_valid, number:
        The word completes the sum of output pixel `number`, in raster order.
    column_end, tile_end:
        The word is the last of its column; of the tile.

    Handshake
    ---------
    `start` and `step` are strobes without back-pressure.

    Timing
    ------
    One word a cycle; outputs change in the cycle after `start` or `step`.

    Requirements
    ------------
    `columns` is valid with `start` and `step`. Not both in one cycle. All sizes are at least 1; the output has at most
    `strip` pixels.

    Reset and faults
    ----------------
    Data registers are not reset: `start` initializes them. There are no faults.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "start": In(1),
                "columns": In(columns_layout(params)),
                "step": In(1),
                "sum_valid": Out(1),
                "number": Out((params.strip - 1).bit_length()),
                "column_end": Out(1),
                "tile_end": Out(1),
            }
        )

    @staticmethod
    def model(columns: Mapping[str, int]) -> Iterator[tuple[int, int, int | None]]:
        """Column, row and completed output pixel of each word of a tile, in order."""
        height = max(columns["column_rows"], (columns["out_h"] - 1) * columns["stride_h"] + columns["reach_h"])
        rows = {y * columns["stride_h"] + columns["reach_h"] - 1: y for y in range(columns["out_h"])}
        taken = {x * columns["stride_w"] + columns["reach_w"] - 1: x for x in range(columns["out_w"])}
        for column in range(max(taken) + 1):
            for row in range(height):
                both = row in rows and column in taken
                yield column, row, rows[row] * columns["out_w"] + taken[column] if both else None

    def elaborate(self, platform: object) -> Module:
        """Counters with registered terminal counts: along a column, and along the columns."""
        m = Module()
        columns = self.columns
        row_counts, row_takes = self._rows(m)
        ahead = DownCounter(REACH_BITS, "columns_ahead")
        left = DownCounter(len(columns.out_w), "columns_left")
        m.d.comb += [
            self.column_end.eq(row_counts),
            self.sum_valid.eq(row_takes & ahead.last),
            self.tile_end.eq(self.column_end & ahead.last & left.last),
        ]
        with m.If(self.start | (self.step & self.tile_end)):
            ahead.load(m, columns.reach_w)
            left.load(m, columns.out_w)
        with m.Elif(self.step & self.column_end):
            with m.If(ahead.last):
                ahead.load(m, columns.stride_w)
                left.step(m)
            with m.Else():
                ahead.step(m)
        self._number(m, row_takes, ahead.last)
        return m

    def _rows(self, m: Module) -> tuple[Value, Value]:
        """Whether the word is its column's last, and whether it is the last one under a kernel at some output row."""
        columns = self.columns
        ahead = DownCounter(REACH_BITS, "rows_ahead")
        left = DownCounter(len(columns.out_h), "rows_left")
        least = DownCounter(len(columns.column_rows), "rows_least")
        complete = Signal()
        takes, end = Signal(), Signal()
        m.d.comb += [takes.eq(ahead.last & ~complete), end.eq(least.last & (complete | (takes & left.last)))]
        with m.If(self.start | (self.step & end)):
            ahead.load(m, columns.reach_h)
            left.load(m, columns.out_h)
            least.load(m, columns.column_rows)
            m.d.sync += complete.eq(0)
        with m.Elif(self.step):
            with m.If(~least.last):
                least.step(m)
            with m.If(~ahead.last):
                ahead.step(m)
            with m.Elif(left.last):
                m.d.sync += complete.eq(1)
            with m.Else():
                ahead.load(m, columns.stride_h)
                left.step(m)
        return end, takes

    def _number(self, m: Module, row_takes: Value, column_takes: Value) -> None:
        """The output pixel: `out_w` further on in each output row, from that of the column's first one."""
        first = Signal.like(self.number, reset_less=True)
        number = Signal.like(self.number, name="number_register", reset_less=True)
        following = Signal.like(first)
        m.d.comb += [self.number.eq(number), following.eq(first + column_takes)]
        with m.If(self.start | (self.step & self.tile_end)):
            m.d.sync += [first.eq(0), number.eq(0)]
        with m.Elif(self.step & self.column_end):
            m.d.sync += [first.eq(following), number.eq(following)]
        with m.Elif(self.step & row_takes):
            m.d.sync += number.eq(number + self.columns.out_w)
