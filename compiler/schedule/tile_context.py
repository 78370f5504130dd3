"""What a stage sees while it emits one tile: local addresses, the loaded tables, and the emitter."""

from __future__ import annotations

from dataclasses import dataclass

from intloom.compiler.emit.emitter import Emitter
from intloom.compiler.program.program import Provenance
from intloom.compiler.schedule.geometry import Rect, Tile
from intloom.compiler.schedule.weight_part import WeightPart
from intloom.hw.spec.isa import Kind


@dataclass(frozen=True)
class Chunk:
    """A group of a stage's output blocks (in words), the input blocks that it reads, and its weights.

    Input blocks count from the operand's first block. `weight_at` counts from the start of the constant image. With
    `weight_parts`, the weights come from there instead.
    """

    index: int
    out_first: int
    out_blocks: int
    in_first: int
    in_blocks: int
    weight_at: int = 0
    weight_words: int = 0
    weight_parts: tuple[WeightPart, ...] = ()


@dataclass
class LoadedTables:
    """The tables that the array and the vector unit hold at this point of the stream."""

    array: bytes | None = None
    vector: bytes | None = None
    exponentials: list[bytes] | None = None


@dataclass
class TileContext:
    """Where a tile's pieces lie while it is worked on."""

    emitter: Emitter
    node: str
    provenance: Provenance
    rect: Rect
    chunk: Chunk
    operands: list[Tile]
    result: Tile
    copies: list[Tile | None]
    temporary: int
    weights: int
    constants: int
    tables: dict[bytes, int]
    held: LoadedTables

    def emit(self, kind: Kind, note: str = "", /, **fields: int) -> None:
        """Add an instruction of this tile."""
        p = self.provenance
        self.emitter.emit(kind, Provenance(layer=p.layer, tile=p.tile, note=note or p.note), **fields)

    def use_exponentials(self, parts: list[bytes]) -> None:
        """Bring exponentials into the vector unit, byte by byte from the lowest on."""
        if self.held.exponentials == parts:
            return
        for number, part in enumerate(parts):
            self.emit(Kind.VEXP, "exponentials", a_base=self.tables[part], part=number)
        self.held.exponentials = parts

    def use_table(self, table: bytes | None) -> int:
        """Bring `table` into the vector unit; gives the value of the instruction's table field."""
        if table is None:
            return 0
        if self.held.vector != table:
            self.emit(Kind.VTABLE, "table", a_base=self.tables[table])
            self.held.vector = table
        return 1
