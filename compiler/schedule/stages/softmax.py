"""The stage of a Softmax: all channels of a pixel in one instruction."""

from dataclasses import dataclass

from intloom.compiler.ir import Softmax
from intloom.compiler.schedule.stages.placement import Rect
from intloom.compiler.schedule.stages.stage import TileContext, VectorStage
from intloom.compiler.schedule.stages.stage_list import StageList, check_fields, check_instruction, schedules
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES, PASSES


@dataclass(frozen=True, eq=False, kw_only=True)
class SoftmaxStage(VectorStage):
    """Exponentials, then tiles with all channels."""

    all_channels = True
    overlaps_array = True
    node: Softmax

    @property
    def _parts(self) -> list[bytes]:
        """The exponentials byte by byte, from the lowest on."""
        return [self.node.exponentials[part::EXPONENTIAL_BYTES] for part in range(EXPONENTIAL_BYTES)]

    @property
    def vector_tables(self) -> list[bytes]:
        """The exponentials first."""
        return [*self._parts, *super().vector_tables]

    @property
    def reloaded_tables(self) -> list[bytes]:
        """Exponentials are held: the Softmaxes of a group mostly have the same ones."""
        return super().vector_tables

    def own_words(self, rect: Rect) -> int:
        """Words that take as long as the instruction: `softmax_lanes` bytes take a cycle in each pass."""
        return PASSES * rect.area * self.out.blocks * self.params.vector_lanes // self.params.softmax_lanes

    def compute(self, context: TileContext) -> None:
        """The exponentials, unless they are held, and the instruction."""
        context.use_exponentials(self._parts)
        tile = context.operands[0]
        for low, high, part in tile.straight(context.rect.y0, context.rect.y1):
            rect = Rect(low, high, context.rect.x0, context.rect.x1)
            context.emit(
                Kind.VSOFTMAX,
                **part.fields("a", rect.y0, rect.x0),
                **self.output_fields(context, context.result, rect),
                last_bytes=self.last_bytes,
                less=self.node.less,
                zp_out=self.node.zp_out,
            )


@schedules(Softmax)
def schedule_softmax(stages: StageList, node: Softmax) -> None:
    """VEXP and VSOFTMAX."""
    check_instruction(node, Kind.VSOFTMAX, stages.params)
    stage = SoftmaxStage(*stages.common(node), node=node)
    check_fields(node, Kind.VSOFTMAX, {"blocks": stage.out.blocks})
    stages.add(stage, node.output)
