"""Elementwise operations: an instruction of the vector unit, or the residual addition of a convolution."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from intloom.compiler.ir import Add, Conv, ConvTranspose, IntGraph
from intloom.compiler.ir.elementwise import Elementwise
from intloom.compiler.schedule.stages.conv import conv_stage
from intloom.compiler.schedule.stages.placement import Rect
from intloom.compiler.schedule.stages.stage import Chunk, TileContext, VectorStage
from intloom.compiler.schedule.stages.stage_list import StageList, check_instruction, schedules
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True, eq=False, kw_only=True)
class ElementwiseStage(VectorStage):
    """One elementwise instruction of two tensors, of which one may be a pixel that is broadcast."""

    kind: Kind
    fields: Mapping[str, int]
    """The instruction's own fields."""

    def _spread(self, operand: int) -> bool:
        buffer = self.operands[operand].buffer
        return (buffer.height, buffer.width) != self.extent

    def operand_rect(self, operand: int, rect: Rect) -> Rect:
        """The tile, or the only pixel."""
        return Rect(0, 1, 0, 1) if self._spread(operand) else rect

    def operand_blocks(self, operand: int, chunk: Chunk) -> tuple[int, int]:
        """The chunk's own blocks."""
        return chunk.in_first, chunk.in_blocks

    def _runs(self, context: TileContext) -> list[Rect]:
        """The tile, or with a pixel, parts of it whose pixels follow each other in the operand and in the result."""
        rect = context.rect
        wide = [t for k, t in enumerate(context.operands) if not self._spread(k)]
        if len(wide) == len(context.operands):
            return [rect]
        rows = 1
        if all(t.row == rect.width for t in (*wide, context.result)):
            rows = max(1, BY_KIND[self.kind].field("out_h").maximum // rect.width)
        return [Rect(y, min(y + rows, rect.y1), rect.x0, rect.x1) for y in range(rect.y0, rect.y1, rows)]

    def compute(self, context: TileContext) -> None:
        """One instruction; with a pixel, pixels of the other operand are rows, of which each adds 0 to its address."""
        for rect in self._runs(context):
            fields = self.output_fields(context, context.result, rect)
            for k, (name, tile) in enumerate(zip("ab", context.operands, strict=True)):
                fields |= tile.fields(name, 0, 0) if self._spread(k) else tile.fields(name, rect.y0, rect.x0)
            if self._spread(0) or self._spread(1):
                fields |= {"out_h": rect.area, "out_w": 1, "out_row": 1}
                fields |= {f"{name}_row": int(not self._spread(k)) for k, name in enumerate("ab")}
            context.emit(self.kind, **fields, table=context.use_table(self.table), **self.fields)


def find_residuals(graph: IntGraph, params: HardwareParams) -> dict[str, Conv]:
    """For each Add, by name, that a convolution can perform, that convolution; the later one if both operands do."""
    producers = {n.output: n for n in graph.nodes}
    position = {n.name: k for k, n in enumerate(graph.nodes)}
    residuals: dict[str, Conv] = {}
    for node in graph.nodes:
        # A fused sum has no table of its own, and the convolution's result never reaches memory, so it cannot be both
        # operands.
        if not isinstance(node, Add) or node.table is not None or node.inputs[0] == node.inputs[1]:
            continue
        convs = [producers[t] for t in node.inputs if t in producers]
        fitting = [c for c in convs if isinstance(c, Conv) and _can_fuse(graph, params, c, node)]
        if fitting:
            # The other operand must be in memory when the convolution runs, so the later one adds.
            residuals[node.name] = max(fitting, key=lambda c: position[c.name])
    return residuals


def _can_fuse(graph: IntGraph, params: HardwareParams, conv: Conv, add: Add) -> bool:
    shapes = {graph.tensors[t].shape for t in (*add.inputs, add.output)}
    alone = graph.consumers(conv.output) == (add,) and conv.output not in graph.outputs
    channels, rows, cols = len(conv.bias), params.rows, params.cols
    # Output blocks must not extend past the last word: the residual operand has no words there.
    whole = -(-channels // cols) * cols <= -(-channels // rows) * rows
    simple = conv.group == 1 and not isinstance(conv, ConvTranspose)
    return alone and whole and simple and len(shapes) == 1


@schedules(Elementwise)
def schedule_elementwise(stages: StageList, node: Elementwise) -> None:
    """The instruction that the operator names."""
    kind, fields = node.instruction()
    check_instruction(node, kind, stages.params)
    stages.add(ElementwiseStage(*stages.common(node), kind=kind, fields=fields, table=node.table), node.output)


@schedules(Add)
def schedule_add(stages: StageList, node: Add) -> None:
    """VADD, or a ConvStage with a residual."""
    conv = stages.residuals.get(node.name)
    if conv is None:
        schedule_elementwise(stages, node)
        return
    affine, other = node.affine, node.inputs[1]
    if node.inputs[0] != conv.output:
        affine, other = replace(affine, m1=affine.m2, m2=affine.m1), node.inputs[0]
    stages.add(conv_stage(stages, conv, node.output, affine, other), node.output)
