"""The stages of a graph while they are collected, and the copies that each makes of its result.

Tables, resizes, unaligned slices and parts of a concatenation become copies at the stage that makes their source;
chains of them become one copy. Stages whose results only feed copies store nothing: the result stays in the scratchpad.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from intloom.compiler.emit.constants import ConstantImage
from intloom.compiler.ir import Conv, IntGraph, Node
from intloom.compiler.program.program import Layout
from intloom.compiler.schedule.copying import Copy
from intloom.compiler.schedule.geometry import View
from intloom.compiler.schedule.placement import Placement, node_input
from intloom.compiler.schedule.stage import Origin, Stage
from intloom.compiler.schedule.vector_stages import CopyStage
from intloom.hw.spec.isa import BY_KIND, Kind, Unit
from intloom.hw.spec.params import HardwareParams

_LARGEST_FACTOR = BY_KIND[Kind.VCOPY].field("up_h").maximum


@dataclass(frozen=True)
class _ResultView:
    """A tensor as channels from `start` on of a stage's result, seen through a table and an enlargement."""

    stage: Stage
    start: int
    table: bytes | None = None
    factors: tuple[int, int] = (1, 1)

    def through(self, start: int, table: bytes | None, factors: tuple[int, int]) -> _ResultView:
        """The same with a slice, a table and an enlargement added."""
        scale = (self.factors[0] * factors[0], self.factors[1] * factors[1])
        return _ResultView(self.stage, self.start + start, compose(self.table, table), scale)


def compose(first: bytes | None, second: bytes | None) -> bytes | None:
    """The table that applies `first`, then `second`."""
    if first is None or second is None:
        return second if first is None else first
    return bytes(np.frombuffer(second, np.uint8)[np.frombuffer(first, np.uint8)])


@dataclass
class StageList:
    """What the schedules of operators add to, in graph order."""

    graph: IntGraph
    params: HardwareParams
    image: ConstantImage
    keep: bool
    """Every tensor is stored: nothing is fused."""
    placement: Placement
    residuals: dict[str, Conv]
    """For each Add that runs as the residual addition of a convolution, by name, that convolution."""
    stages: list[Stage] = field(default_factory=list)
    _sources: dict[str, _ResultView] = field(default_factory=dict)

    def origin(self, node: Node) -> Origin:
        """The origin of a node's stage."""
        macs = node.macs(self.graph.tensors)
        return Origin(name=node.name, op=type(node).__name__, origin=node.origin, macs=macs)

    def common(self, node: Node) -> tuple[HardwareParams, Origin, tuple[View, ...], View]:
        """The first arguments of every stage's constructor."""
        operands = tuple(self.placement.view(t) for t in node.inputs)
        return self.params, self.origin(node), operands, self.placement.view(node.output)

    def is_packed(self, node: Node) -> bool:
        """Whether a node's first operand is stored as packed pixels."""
        return self.placement.view(node_input(node)).buffer.layout is Layout.PIXELS4

    def add(self, stage: Stage, output: str) -> None:
        """Add the stage that makes a tensor."""
        self.stages.append(stage)
        self._sources[output] = _ResultView(stage, 0)

    def derive(
        self, node: Node, *, start: int = 0, table: bytes | None = None, factors: tuple[int, int] = (1, 1)
    ) -> None:
        """Note that a copied tensor can also be had from its source's stage."""
        source = self._sources.get(node_input(node))
        # With `keep`, every copy reads its stored source: tables and enlargements are not composed.
        if source is not None and not self.keep:
            self._sources[node.output] = source.through(start, table, factors)

    def copy(
        self,
        node: Node,
        tensor: str,
        target: View,
        *,
        start: int = 0,
        table: bytes | None = None,
        factors: tuple[int, int] = (1, 1),
    ) -> None:
        """Copy a tensor's channels from `start` on to `target`, at the stage that makes it if there is one."""
        source = self._sources.get(tensor)
        if source is None or not self._can_copy(source.through(start, table, factors), target):
            view = self.placement.view(tensor)
            stage = CopyStage(params=self.params, origin=self.origin(node), operands=(view,), out=view)
            self.stages.append(stage)
            source = _ResultView(stage, 0)
        made = source.through(start, table, factors)
        copy = Copy(made.start, made.start + target.channels, target, made.table, made.factors, node.name)
        made.stage.copies.append(copy)

    def _can_copy(self, source: _ResultView, target: View) -> bool:
        """Whether a stage can make the copy: a convolution's chunks must fill whole words of the target."""
        shifted = (source.start - target.channel) % self.params.rows
        return max(source.factors) <= _LARGEST_FACTOR and not (shifted and source.stage.unit is Unit.MAC)

    def drop_dead_stages(self) -> None:
        """Walk back from the outputs: keep what a kept stage reads, and number the stages that remain."""
        pinned = (*self.graph.inputs, *(self.graph.tensors if self.keep else self.graph.outputs))
        for name in pinned:
            buffer = self.placement.view(name).buffer
            buffer.stored = buffer.pinned = True
            # The host reads whole tensors, so all their blocks are needed.
            buffer.needed.update(range(buffer.blocks))
        kept: list[Stage] = []
        # Backwards, since a stage is dead only if no later stage that is kept reads what it makes.
        for stage in reversed(self.stages):
            out = stage.out
            stage.copies = [c for c in stage.copies if not c.target.buffer.needed.isdisjoint(c.target.block_range)]
            stage.keep_result = not stage.in_place and not out.buffer.needed.isdisjoint(out.block_range)
            if not stage.keep_result and not stage.copies:
                continue
            for view in (*stage.operands, *stage.weight_operands):
                view.buffer.stored = True
                view.buffer.needed.update(view.block_range)
            for view in stage.weight_operands:
                # Read in DRAM even if the scratchpad holds it.
                view.buffer.pinned = True
            kept.append(stage)
        self.stages = kept[::-1]
        for index, stage in enumerate(self.stages):
            stage.index = index
