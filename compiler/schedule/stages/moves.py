"""Operations that only move bytes: table look-up, enlargement, channel slice and concatenation."""

from dataclasses import dataclass

from intloom.compiler.ir import Concat, Custom, Resize, Slice, Table
from intloom.compiler.schedule.stages.stage import Chunk, Copy, Motion, TileContext, VectorStage
from intloom.compiler.schedule.stages.stage_list import StageList, check_fields, schedules, unsupported
from intloom.hw.spec.isa import Kind


@dataclass(frozen=True, eq=False, kw_only=True)
class ConcatStage(VectorStage):
    """Concatenation of tensors whose channels do not fill whole words: copied together in the scratchpad."""

    all_channels = True

    def operand_blocks(self, operand: int, chunk: Chunk) -> tuple[int, int]:
        """All blocks of every operand."""
        return 0, self.operands[operand].blocks

    def compute(self, context: TileContext) -> None:
        """Copies of every operand, in channel order."""
        to = 0
        for view, tile in zip(self.operands, context.operands, strict=True):
            copy = Copy(Motion(), self.out.part(to, to + view.channels), self.name)
            block = copy.target_blocks((0, view.channels))[0] - self.out.first_block
            self.emit_copy(context, copy, tile, context.result.at(context.result.word(block)), (0, view.channels))
            to += view.channels


@schedules(Table)
def schedule_table(stages: StageList, node: Table) -> None:
    """A copy through the table."""
    stages.move(node, Motion(table=node.table))


@schedules(Resize)
def schedule_resize(stages: StageList, node: Resize) -> None:
    """An enlarging copy."""
    check_fields(node, Kind.VCOPY, {"up_h": node.factors[0], "up_w": node.factors[1]})
    stages.move(node, Motion(factors=node.factors))


@schedules(Slice)
def schedule_slice(stages: StageList, node: Slice) -> None:
    """A view if the slice starts at a word's first byte, else a copy."""
    stages.move(node, Motion(start=node.start))


@schedules(Concat)
def schedule_concat(stages: StageList, node: Concat) -> None:
    """A copy for each part that is not written in place; a ConcatStage if parts do not start at whole words."""
    whole = stages.placement.view(node.output)
    if not stages.placement.is_regular(node):
        stages.add(ConcatStage(*stages.common(node)), node.output)
        return
    at = 0
    for tensor in node.inputs:
        target = whole.part(at, at + stages.graph.tensors[tensor].channels)
        if stages.placement.view(tensor) != target:
            stages.copy(node, tensor, target)
        at += target.channels


@schedules(Custom)
def schedule_custom(stages: StageList, node: Custom) -> None:
    """None: a custom operation runs on the accelerator only if the front end lowers it to other operations."""
    raise unsupported(node, f"{node.domain}::{node.op} has no lowering", "register one, or run it on the host")
