"""From graph nodes to stages.

1. A convolution whose only consumer is a plain Add takes the Add as its residual.
2. Tables, resizes, unaligned slices and parts of a concatenation become copies at the stage that makes their source;
   chains of them become one copy.
3. What nothing needs is dropped: results that only feed copies never leave the scratchpad.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from intloom.compiler.emit.constants import ConstantImage
from intloom.compiler.ir import (
    Add,
    AvgPool,
    Concat,
    Conv,
    ConvTranspose,
    IntGraph,
    MaxPool,
    Mul,
    Node,
    Resize,
    Slice,
    Table,
)
from intloom.compiler.ir.graph import macs
from intloom.compiler.program.program import Layout
from intloom.compiler.schedule.conv_stage import ConvStage
from intloom.compiler.schedule.convolution import Geometry, Weights, packed_kernel, transposed_passes
from intloom.compiler.schedule.copying import Copy
from intloom.compiler.schedule.geometry import View
from intloom.compiler.schedule.limits import check_node, check_sizes
from intloom.compiler.schedule.placement import Placement, node_input
from intloom.compiler.schedule.stage import Origin, Stage
from intloom.compiler.schedule.vector_stages import ConcatStage, CopyStage, PairStage, PoolStage
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams

_LARGEST_FACTOR = BY_KIND[Kind.VCOPY].field("up_h").maximum


@dataclass(frozen=True)
class _ResultView:
    """A tensor as channels from `start` on of a stage's result, seen through a table and an enlargement."""

    stage: Stage
    start: int
    table: bytes | None = None
    factors: tuple[int, int] = (1, 1)


def compose(first: bytes | None, second: bytes | None) -> bytes | None:
    """The table that does `first`, then `second`."""
    if first is None or second is None:
        return second if first is None else first
    return bytes(np.frombuffer(second, np.uint8)[np.frombuffer(first, np.uint8)])


class StageBuilder:
    """Turns a graph into stages; `stages` and `placement` hold the result."""

    def __init__(
        self, graph: IntGraph, params: HardwareParams, image: ConstantImage, *, keep_intermediates: bool
    ) -> None:
        self.graph = graph
        self.params = params
        self.image = image
        self.keep = keep_intermediates
        self.placement = Placement(graph, params)
        self.stages: list[Stage] = []
        self._sources: dict[str, _ResultView] = {}
        self._layer = {n.name: k for k, n in enumerate(graph.nodes)}
        self._consumers = {t: graph.consumers(t) for t in graph.tensors}
        check_sizes(graph)
        self._residuals = {} if keep_intermediates else self._find_residuals()
        for node in graph.nodes:
            check_node(node, params, packed=self._reads_packed(node))
            self._lower(node)
        self._drop_unneeded()

    def _reads_packed(self, node: Node) -> bool:
        return self.placement.view(node_input(node)).buffer.layout is Layout.PIXELS4

    def _find_residuals(self) -> dict[str, Conv]:
        """For each Add that a convolution can do, that convolution; the later one if both operands come from one."""
        producers = {n.output: n for n in self.graph.nodes}
        found: dict[str, Conv] = {}
        for node in self.graph.nodes:
            if not isinstance(node, Add) or node.table is not None or node.inputs[0] == node.inputs[1]:
                continue
            convs = [producers[t] for t in node.inputs if t in producers]
            fitting = [c for c in convs if isinstance(c, Conv) and self._fits_residual(c, node)]
            if fitting:
                found[node.name] = max(fitting, key=lambda c: self._layer[c.name])
        return found

    def _fits_residual(self, conv: Conv, add: Add) -> bool:
        shapes = {self.graph.tensors[t].shape for t in (*add.inputs, add.output)}
        alone = self._consumers[conv.output] == (add,) and conv.output not in self.graph.outputs
        channels = len(conv.bias)
        rows, cols = self.params.rows, self.params.cols
        whole = -(-channels // cols) * cols <= -(-channels // rows) * rows
        simple = conv.group == 1 and not isinstance(conv, ConvTranspose)
        return alone and whole and simple and len(shapes) == 1

    def _lower(self, node: Node) -> None:
        match node:
            case Conv():
                if node not in self._residuals.values():
                    self._add(self._conv(node, node.output, None, None), node.output)
            case Add() if node.name in self._residuals:
                self._fused(node, self._residuals[node.name])
            case Add() | Mul():
                self._add(PairStage(*self._common(node), node=node), node.output)
            case MaxPool() | AvgPool():
                self._add(PoolStage(*self._common(node), node=node), node.output)
            case Table():
                self._copy(node, node_input(node), self.placement.view(node.output), table=node.table)
                self._derive(node, table=node.table)
            case Resize():
                self._copy(node, node_input(node), self.placement.view(node.output), factors=node.factors)
                self._derive(node, factors=node.factors)
            case Slice():
                self._slice(node)
            case Concat():
                self._concat(node)

    def _common(self, node: Node) -> tuple[HardwareParams, Origin, tuple[View, ...], View]:
        """What the constructor of every stage takes first."""
        operands = tuple(self.placement.view(t) for t in node.inputs)
        origin = Origin(name=node.name, op=type(node).__name__, origin=node.origin)
        return self.params, origin, operands, self.placement.view(node.output)

    def _add(self, stage: Stage, output: str | None) -> None:
        self.stages.append(stage)
        if output is not None:
            self._sources[output] = _ResultView(stage, 0)

    def _conv(self, node: Conv, output: str, residual: Affine | None, other: str | None) -> ConvStage:
        source = self.placement.view(node_input(node))
        views = (source,) if other is None else (source, self.placement.view(other))
        return ConvStage(
            params=self.params,
            origin=Origin(name=node.name, op=type(node).__name__, origin=node.origin, macs=self.macs(node)),
            operands=views,
            out=self.placement.view(output),
            node=node,
            passes=self._passes(node, source),
            image=self.image,
            group=node.group,
            residual=residual,
        )

    def _passes(self, node: Conv, source: View) -> list[tuple[Geometry, Weights]]:
        if isinstance(node, ConvTranspose):
            return transposed_passes(node.weights, node.strides, node.dilations, node.pads[:2])
        packed = source.buffer.layout is Layout.PIXELS4
        weights = packed_kernel(node.weights, self.params) if packed else node.weights
        kernel = (weights.shape[3], weights.shape[4])
        return [(Geometry(kernel, (-node.pads[0], -node.pads[1]), node.strides, node.dilations), weights)]

    def macs(self, node: Node) -> int:
        """True multiply-accumulates of a node."""
        return macs(node, self.graph.tensors)

    def _fused(self, node: Add, conv: Conv) -> None:
        other = node.inputs[1] if node.inputs[0] == conv.output else node.inputs[0]
        affine = node.affine
        if node.inputs[0] != conv.output:
            affine = replace(affine, m1=affine.m2, m2=affine.m1)
        self._add(self._conv(conv, node.output, affine, other), node.output)

    def _slice(self, node: Slice) -> None:
        if not self.placement.is_view(node):
            self._copy(node, node_input(node), self.placement.view(node.output), start=node.start)
        self._derive(node, start=node.start)

    def _concat(self, node: Concat) -> None:
        whole = self.placement.view(node.output)
        if not self.placement.is_regular(node):
            self._add(ConcatStage(*self._common(node)), node.output)
            return
        at = 0
        for tensor in node.inputs:
            target = whole.part(at, at + self.graph.tensors[tensor].channels)
            if self.placement.view(tensor) != target:
                self._copy(node, tensor, target)
            at += target.channels

    def _derive(
        self, node: Node, *, start: int = 0, table: bytes | None = None, factors: tuple[int, int] = (1, 1)
    ) -> None:
        """Note that a copied tensor can also be had from its source's stage."""
        source = self._sources.get(node_input(node))
        if source is not None and not self.keep:
            self._sources[node.output] = _through(source, start, table, factors)

    def _copy(
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
        if source is None or not self._can_copy(_through(source, start, table, factors), target):
            view = self.placement.view(tensor)
            origin = Origin(name=node.name, op=type(node).__name__, origin=node.origin)
            stage = CopyStage(params=self.params, origin=origin, operands=(view,), out=view)
            self._add(stage, None)
            source = _ResultView(stage, 0)
        made = _through(source, start, table, factors)
        copy = Copy(made.start, made.start + target.channels, target, made.table, made.factors, node.name)
        made.stage.copies.append(copy)

    def _can_copy(self, source: _ResultView, target: View) -> bool:
        """Whether a stage can make the copy: a convolution's chunks must fill whole words of the target."""
        shifted = (source.start - target.channel) % self.params.rows
        return max(source.factors) <= _LARGEST_FACTOR and not (shifted and isinstance(source.stage, ConvStage))

    def _drop_unneeded(self) -> None:
        """Work backwards from the outputs: keep what a kept stage reads."""
        pinned = (*self.graph.inputs, *(self.graph.tensors if self.keep else self.graph.outputs))
        for name in pinned:
            buffer = self.placement.view(name).buffer
            buffer.stored = buffer.pinned = True
            buffer.needed.update(range(buffer.blocks))
        kept: list[Stage] = []
        for stage in reversed(self.stages):
            out = stage.out
            stage.copies = [c for c in stage.copies if c.target.buffer.stored]
            stage.keep_result = not stage.in_place and not out.buffer.needed.isdisjoint(out.block_range)
            if not stage.keep_result and not stage.copies:
                continue
            for view in stage.operands:
                view.buffer.stored = True
                view.buffer.needed.update(view.block_range)
            kept.append(stage)
        self.stages = kept[::-1]
        for index, stage in enumerate(self.stages):
            stage.index = index


def _through(source: _ResultView, start: int, table: bytes | None, factors: tuple[int, int]) -> _ResultView:
    scale = (source.factors[0] * factors[0], source.factors[1] * factors[1])
    return _ResultView(source.stage, source.start + start, compose(source.table, table), scale)
