"""The stages of a graph while they are collected, the copies that each makes of its result, and the registry.

Tables, resizes, unaligned slices and parts of a concatenation become copies at the stage that makes their source;
chains of them become one copy. Stages whose results only feed copies store nothing: the result stays in the scratchpad.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.common.registry import Registry
from intloom.compiler.ir import Conv, IntGraph, MatMul, Node
from intloom.compiler.limits import LARGEST_FACTOR
from intloom.compiler.program.program import Layout
from intloom.compiler.refusals import Refusal
from intloom.compiler.schedule.stages.placement import Buffer, Placement, View, node_input
from intloom.compiler.schedule.stages.stage import Copy, CopyStage, Motion, Stage
from intloom.compiler.schedule.stages.weights import surplus_bits
from intloom.hw.spec.arith import INT8_MIN, LARGEST_DIFFERENCE
from intloom.hw.spec.isa import BY_KIND, Kind, Unit
from intloom.hw.spec.params import HardwareParams


def unsupported(node: Node, reason: str, remedy: str) -> UnsupportedError:
    """The error for a node that cannot run: reason and remedy reach the user."""
    return UnsupportedError(f"node {node.name!r} ({type(node).__name__}): {reason}; {remedy}", Refusal.SIZE.number)


def check_fields(node: Node, kind: Kind, values: dict[str, int]) -> None:
    """Check that values fit the fields of an instruction."""
    for name, value in values.items():
        field = BY_KIND[kind].field(name)
        if not field.minimum <= value <= field.maximum:
            raise unsupported(
                node, f"{name} must be from {field.minimum} to {field.maximum}, not {value}", "split the node"
            )


def check_instruction(node: Node, kind: Kind, params: HardwareParams) -> None:
    """Check that the hardware has an instruction."""
    option = BY_KIND[kind].requires
    if option and not getattr(params, option):
        raise unsupported(node, f"this hardware lacks the instruction {kind}", f"set {option} = true")


def window_fields(kernel: tuple[int, int], strides: tuple[int, int]) -> dict[str, int]:
    """The instruction fields of a window."""
    return {"kernel_h": kernel[0], "kernel_w": kernel[1], "stride_h": strides[0], "stride_w": strides[1]}


def check_widths(graph: IntGraph, params: HardwareParams) -> None:
    """Check that scales fit the requantizers' mantissas, and sums the accumulators."""
    for node in graph.nodes:
        if isinstance(node, Conv | MatMul):
            mantissas, shifts = np.atleast_1d(node.mantissa).astype(np.int64), np.atleast_1d(node.shift)
            _check_scales(node, mantissas, shifts, params.mantissa_bits)
            # Sums of 32 bits wrap, as in the golden model; all weights are added up for narrower ones only.
            if params.acc_bits < _SUM_BITS:
                _check_sums(node, _largest_sum(node, graph), params.acc_bits)


def _check_scales(
    node: Node, mantissas: NDArray[np.int64], shifts: NDArray[np.unsignedinteger], available: int
) -> None:
    """Low bits of a mantissa that are 0 need no bits of the hardware."""
    surplus = surplus_bits(mantissas, available)
    if np.any(mantissas & (1 << surplus) - 1) or np.any(shifts < surplus):
        raise unsupported(
            node, f"a scale needs more than the {available} mantissa bits of this hardware", "use mantissa_bits = 24"
        )


def _largest_sum(node: Conv | MatMul, graph: IntGraph) -> int:
    """A bound of the magnitude of all sums of products."""
    if isinstance(node, MatMul):
        return graph.tensors[node.inputs[0]].channels * -INT8_MIN * LARGEST_DIFFERENCE
    return int(np.abs(node.weights.astype(np.int64)).sum(axis=(1, 2, 3)).max(initial=0)) * -INT8_MIN


def _check_sums(node: Node, largest: int, available: int) -> None:
    if largest >= 1 << (available - 1):
        needed = min(largest.bit_length() + 1, _SUM_BITS)
        raise unsupported(
            node, f"its sums may need {needed} bits, and accumulators have {available}", f"use acc_bits = {needed}"
        )


_SUM_BITS = 32


def check_sizes(graph: IntGraph) -> None:
    """Check that every tensor's height and width fit the instruction fields."""
    largest = BY_KIND[Kind.CONV].field("in_w").maximum
    for tensor in graph.tensors.values():
        if max(tensor.height, tensor.width) > largest:
            raise UnsupportedError(
                f"tensor {tensor.name!r} must be at most {largest} pixels high and wide, not "
                f"{tensor.height}x{tensor.width}",
                Refusal.SIZE.number,
            )


_SAME = Motion()


@dataclass(frozen=True, eq=False, kw_only=True)
class Stages:
    """What must be computed, in order, and which tensors that takes in DRAM."""

    graph: IntGraph
    params: HardwareParams
    placement: Placement
    stages: tuple[Stage, ...]
    needed: Mapping[Buffer, frozenset[int]]
    """For each buffer with words in DRAM, the blocks that a stage or the host may read there."""
    pinned: frozenset[Buffer]
    """Buffers that keep their content to the program's end."""
    constants: Mapping[Buffer, bytes]
    """Buffers in the constant image, with their content."""


@dataclass
class StageList:
    """What the schedules of operators add to, in graph order."""

    graph: IntGraph
    params: HardwareParams
    keep: bool
    """Every tensor is stored: nothing is fused."""
    placement: Placement
    residuals: dict[str, Conv]
    """For each Add that runs as the residual addition of a convolution, by name, that convolution."""
    stages: list[Stage] = field(default_factory=list)
    constants: dict[Buffer, bytes] = field(default_factory=dict)
    _copies: dict[Stage, list[Copy]] = field(default_factory=dict)
    _sources: dict[str, tuple[Stage, Motion]] = field(default_factory=dict)
    """For tensors, a stage and what made them of its result."""

    def common(self, node: Node) -> tuple[HardwareParams, str, tuple[View, ...], View]:
        """The first arguments of every stage's constructor."""
        operands = tuple(self.placement.view(t) for t in node.inputs)
        return self.params, node.name, operands, self.placement.view(node.output)

    def is_packed(self, node: Node) -> bool:
        """Whether a node's first operand is stored as packed pixels."""
        return self.placement.view(node_input(node)).buffer.layout is Layout.PIXELS4

    def add(self, stage: Stage, output: str) -> None:
        """Add the stage that makes a tensor."""
        self.stages.append(stage)
        self._sources[output] = (stage, _SAME)

    def move(self, node: Node, motion: Motion) -> None:
        """Copy what a node's operand becomes to its result, unless that is a part of the operand."""
        source, target = node_input(node), self.placement.view(node.output)
        if target != self.placement.view(source).part(motion.start, motion.start + target.channels):
            self.copy(node, source, target, motion)
        # With `keep`, every copy reads its stored source: tables and enlargements are not composed.
        if source in self._sources and not self.keep:
            stage, made = self._sources[source]
            self._sources[node.output] = (stage, made.then(motion))

    def copy(self, node: Node, tensor: str, target: View, motion: Motion = _SAME) -> None:
        """Copy what a tensor becomes to `target`, at the stage that makes it if there is one."""
        stage, made = self._sources.get(tensor, (None, _SAME))
        if stage is None or not self._can_copy(stage, made.then(motion), target):
            # The whole words that hold the copied channels.
            rows, end = self.params.rows, motion.start + target.channels
            first = motion.start // rows * rows
            view = self.placement.view(tensor)
            view = view.part(first, min(-(-end // rows) * rows, view.channels))
            stage, made = CopyStage(params=self.params, name=node.name, operands=(view,), out=view), Motion(-first)
            self.stages.append(stage)
        self._copies.setdefault(stage, []).append(Copy(made.then(motion), target, node.name))

    def _can_copy(self, stage: Stage, motion: Motion, target: View) -> bool:
        """Whether a stage can make the copy: a convolution's chunks must fill whole words of the target."""
        shifted = (motion.start - target.channel) % self.params.rows
        return max(motion.factors) <= LARGEST_FACTOR and not (shifted and stage.unit is Unit.MAC)

    def finish(self) -> Stages:
        """The stages that lead to an output: what a kept stage reads is kept."""
        hosted = (*self.graph.inputs, *(self.graph.tensors if self.keep else self.graph.outputs))
        pinned = {self.placement.view(name).buffer for name in hosted}
        # The host reads whole tensors, so all their blocks are needed.
        needed = {buffer: set(range(buffer.blocks)) for buffer in pinned}

        def reaches(view: View) -> bool:
            return not needed.get(view.buffer, set()).isdisjoint(view.block_range)

        kept: list[Stage] = []
        # Backwards, since a stage is dead only if no later stage that is kept reads what it makes.
        for draft in reversed(self.stages):
            copies = tuple(c for c in self._copies.get(draft, ()) if reaches(c.target))
            stage = replace(draft, copies=copies, keep_result=not draft.in_place and reaches(draft.out))
            if not stage.keep_result and not copies:
                continue
            for view in (*stage.operands, *stage.weight_operands):
                needed.setdefault(view.buffer, set()).update(view.block_range)
            # Read in DRAM even if the scratchpad holds it.
            pinned.update(view.buffer for view in stage.weight_operands)
            kept.append(stage)
        return Stages(
            graph=self.graph,
            params=self.params,
            placement=self.placement,
            stages=tuple(kept[::-1]),
            needed={buffer: frozenset(blocks) for buffer, blocks in needed.items()},
            pinned=frozenset(pinned),
            constants=self.constants,
        )


Schedule = Callable[[StageList, Any], None]
"""Checks that the hardware can run a node, then adds its stages or copies."""

SCHEDULES: Registry[type[Any], Schedule] = Registry("a schedule")
schedules = SCHEDULES.register
"""Register the schedule of these node classes and of their subclasses without one."""


def schedule_of(kind: type[Node]) -> Schedule:
    """The schedule of a node class, or of its nearest base class that has one.

    Raises
    ------
    TypeError
        There is none. The package checks all operators when it is imported, so this is a fault of the source.
    """
    for base in kind.__mro__:
        if base in SCHEDULES:
            return SCHEDULES[base]
    raise TypeError(f"the operator {kind.__name__} must have a schedule: register one in compiler/schedule/stages")
