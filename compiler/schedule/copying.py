"""Copies of a tile's channels into another tensor: through a table, enlarged, shifted to other bytes of a word."""

from __future__ import annotations

from dataclasses import dataclass

from intloom.compiler.schedule.geometry import Rect, Tile, View
from intloom.compiler.schedule.tile_context import TileContext
from intloom.hw.spec.isa import Kind


@dataclass(frozen=True)
class Copy:
    """Channels `start` to `stop` of a result go to `target`, each byte through `table`, enlarged by `factors`."""

    start: int
    stop: int
    target: View
    table: bytes | None = None
    factors: tuple[int, int] = (1, 1)
    node: str = ""
    """The graph node that asked for the copy."""

    def channels(self, made: tuple[int, int]) -> tuple[int, int]:
        """The result channels of a chunk (half-open range `made`) that are copied; empty if start >= stop."""
        return max(self.start, made[0]), min(self.stop, made[1])

    def target_blocks(self, made: tuple[int, int]) -> tuple[int, int]:
        """First block (of the target's buffer) and number of blocks that the copy of a chunk writes."""
        start, stop = self.channels(made)
        if start >= stop:
            return 0, 0
        rows = self.target.buffer.params.rows
        shift = self.target.channel - self.start
        first = (start + shift) // rows
        return first, -(-(stop + shift) // rows) - first

    def target_rect(self, rect: Rect) -> Rect:
        """Where a tile's copy lies in the target."""
        return rect.scaled(*self.factors)


@dataclass(frozen=True)
class Segment:
    """Blocks whose bytes move alike: `count` blocks from `source` to `target`, bytes `first` to `first + width`."""

    source: int
    target: int
    count: int
    first: int
    width: int


def segments(start: int, stop: int, to: int, rows: int) -> list[Segment]:
    """How channels `start` to `stop` move to channels from `to` on, in words of `rows` bytes."""
    pieces: list[Segment] = []
    channel = start
    while channel < stop:
        target = to + channel - start
        # A piece ends where the source word or the target word ends.
        width = min(rows - channel % rows, rows - target % rows, stop - channel)
        pieces.append(Segment(channel // rows, target // rows, 1, target % rows, width))
        channel += width
    merged: list[Segment] = []
    for piece in pieces:
        # Channels that move to other bytes of a word alternate between two byte ranges, so a piece may continue the
        # last segment or the one before it.
        for i in range(len(merged) - 1, max(len(merged) - 3, -1), -1):
            m = merged[i]
            follows = (m.source + m.count, m.target + m.count) == (piece.source, piece.target)
            if follows and (m.first, m.width) == (piece.first, piece.width):
                merged[i] = Segment(m.source, m.target, m.count + 1, m.first, m.width)
                break
        else:
            merged.append(piece)
    return merged


def emit_copy(context: TileContext, copy: Copy, source: Tile, target: Tile, made: tuple[int, int]) -> None:
    """Copy channels `made` of a tile; block 0 of `source` holds channel made[0], of `target` the first written."""
    start, stop = copy.channels(made)
    rows = copy.target.buffer.params.rows
    first_block, _ = copy.target_blocks(made)
    to = copy.target.channel + start - copy.start - first_block * rows
    note = f"copy for {copy.node}" if copy.node != context.node else "copy"
    emit_move(context, (start - made[0], stop - made[0], to), source, target, copy.table, copy.factors, note)


def emit_move(
    context: TileContext,
    channels: tuple[int, int, int],
    source: Tile,
    target: Tile,
    table: bytes | None = None,
    factors: tuple[int, int] = (1, 1),
    note: str = "copy",
) -> None:
    """Copy channels (start, stop, to) of the context's rectangle from tile to tile."""
    start, stop, to = channels
    rect = context.rect
    rows = context.emitter.params.rows
    out = rect.scaled(*factors)
    use = context.use_table(table)
    for s in segments(start, stop, to, rows):
        context.emit(
            Kind.VCOPY,
            note,
            a_base=source.word(s.source, rect.y0, rect.x0),
            a_plane=source.plane,
            a_row=source.row,
            a_x=1,
            out_h=out.height,
            out_w=out.width,
            out_base=target.word(s.target, out.y0, out.x0),
            out_plane=target.plane,
            out_row=target.row,
            blocks=s.count,
            table=use,
            up_h=factors[0],
            up_w=factors[1],
            rotate=(to - start) % rows,
            first_byte=s.first,
            byte_count=s.width,
        )
