"""The stage of a normalization: all channels of a pixel in one instruction."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from intloom.compiler.ir import Norm
from intloom.compiler.program.cost import instruction_cost
from intloom.compiler.schedule.stages.placement import Rect
from intloom.compiler.schedule.stages.stage import Chunk, TileContext, VectorStage
from intloom.compiler.schedule.stages.stage_list import StageList, check_fields, check_instruction, schedules
from intloom.hw.spec.isa import Kind, make
from intloom.hw.spec.norm import CONSTANT_WORDS, LARGEST_LINE, pack_constants


@dataclass(frozen=True, eq=False, kw_only=True)
class NormStage(VectorStage):
    """Tiles with all channels, in pieces of at most `LARGEST_LINE` columns."""

    all_channels = True
    overlaps_array = True
    node: Norm

    def constants(self, chunk: Chunk) -> bytes:
        """Gamma and beta of all channels."""
        count = self.out.blocks * self.params.rows
        padded = np.zeros((count, 2), np.int64)
        padded[: len(self.node.gamma)] = np.stack([self.node.gamma, self.node.beta], axis=1)
        return pack_constants([(int(g), int(b)) for g, b in padded], self.params.softmax_lanes)

    def constant_words(self, size: int) -> int:
        """Those of all blocks."""
        return CONSTANT_WORDS * self.out.blocks

    def own_cycles(self, rect: Rect) -> int:
        """Those of all instructions."""
        made = (make(Kind.VNORM, out_h=p.height, out_w=p.width, blocks=self.out.blocks) for p in _pieces(rect))
        return sum(instruction_cost(instruction, self.params).cycles for instruction in made)

    def compute(self, context: TileContext) -> None:
        """One instruction for each piece."""
        tile, result = context.operands[0], context.result
        for low, high, part in tile.straight(context.rect.y0, context.rect.y1):
            rect = Rect(low, high, context.rect.x0, context.rect.x1)
            for piece in _pieces(rect):
                fields = self.output_fields(context, result, rect) | {"out_h": piece.height, "out_w": piece.width}
                fields["out_base"] = result.word(0, low, piece.first)
                context.emit(
                    Kind.VNORM,
                    **fields | ({"out_row": piece.width} if piece.cut else {}),
                    a_base=part.word(0, low, piece.first),
                    a_plane=part.plane,
                    a_row=piece.width if piece.cut else part.row,
                    b_base=context.constants,
                    last_bytes=self.last_bytes,
                    center=int(self.node.center),
                    zp_in=self.node.zp_in,
                    epsilon=self.node.epsilon,
                )


class _Piece(NamedTuple):
    """Columns of a tile from `first` on, or one row cut into `height` lines."""

    first: int
    height: int
    width: int
    cut: bool


def _pieces(rect: Rect) -> list[_Piece]:
    """The tiles of a rectangle's instructions, of equal width but the last."""
    count = -(-rect.width // LARGEST_LINE)
    width = -(-rect.width // count)
    if rect.height > 1 or count == 1:
        columns = range(rect.x0, rect.x1, width)
        return [_Piece(x, rect.height, min(width, rect.x1 - x), False) for x in columns]
    lines, rest = divmod(rect.width, width)
    pieces = [_Piece(rect.x0, lines, width, True)]
    return [*pieces, _Piece(rect.x1 - rest, 1, rest, True)] if rest else pieces


@schedules(Norm)
def schedule_norm(stages: StageList, node: Norm) -> None:
    """VNORM."""
    check_instruction(node, Kind.VNORM, stages.params)
    stage = NormStage(*stages.common(node), node=node)
    check_fields(node, Kind.VNORM, {"blocks": stage.out.blocks})
    stages.add(stage, node.output)
