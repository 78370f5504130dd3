"""The stage of a normalization: all channels of a pixel in one instruction."""

from dataclasses import dataclass

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
        sizes = (_size(rect, piece) for piece in _pieces(rect))
        made = (make(Kind.VNORM, out_h=rows, out_w=columns, blocks=self.out.blocks) for rows, columns in sizes)
        return sum(instruction_cost(instruction, self.params).cycles for instruction in made)

    def compute(self, context: TileContext) -> None:
        """One instruction for each piece."""
        tile, result = context.operands[0], context.result
        for low, high, part in tile.straight(context.rect.y0, context.rect.y1):
            rect = Rect(low, high, context.rect.x0, context.rect.x1)
            for piece in _pieces(rect):
                rows, columns = _size(rect, piece)
                in_lines = rect.height == 1 and columns < rect.width
                fields = self.output_fields(context, result, piece) | {"out_h": rows, "out_w": columns}
                context.emit(
                    Kind.VNORM,
                    **fields | ({"out_row": columns} if in_lines else {}),
                    a_base=part.word(0, low, piece.x0),
                    a_plane=part.plane,
                    a_row=columns if in_lines else part.row,
                    b_base=context.constants,
                    last_bytes=self.last_bytes,
                    center=int(self.node.center),
                    zp_in=self.node.zp_in,
                    epsilon=self.node.epsilon,
                )


def _line(rect: Rect) -> int:
    """Columns of the instructions for a rectangle, of equal width but the last."""
    return -(-rect.width // -(-rect.width // LARGEST_LINE))


def _pieces(rect: Rect) -> list[Rect]:
    """A rectangle for each instruction; a single row is cut into lines of one instruction, and a rest."""
    line = _line(rect)
    step = line if rect.height > 1 else rect.width // line * line
    return [rect._replace(x0=x, x1=min(x + step, rect.x1)) for x in range(rect.x0, rect.x1, step)]


def _size(rect: Rect, piece: Rect) -> tuple[int, int]:
    """Rows and columns of a piece's instruction."""
    width = min(_line(rect), piece.width)
    return piece.area // width, width


@schedules(Norm)
def schedule_norm(stages: StageList, node: Norm) -> None:
    """VNORM."""
    check_instruction(node, Kind.VNORM, stages.params)
    stage = NormStage(*stages.common(node), node=node)
    check_fields(node, Kind.VNORM, {"blocks": stage.out.blocks})
    stages.add(stage, node.output)
