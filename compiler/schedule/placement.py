"""Where tensors lie: concatenations without copies, slices as views, everything else in a buffer of its own.

A concatenation is *regular* when every part starts at a word's first byte. Then a part that is written only for it (or
for it first) is written straight to its address; so is a tensor whose slices are consecutive parts.
"""

from __future__ import annotations

from collections.abc import Mapping

from intloom.compiler.ir import Concat, Conv, ConvTranspose, IntGraph, Node, Slice
from intloom.compiler.program.memory import PIXEL_CHANNELS
from intloom.compiler.program.program import Layout
from intloom.compiler.schedule.geometry import Buffer, View
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams

_LARGEST_KERNEL = BY_KIND[Kind.CONV].field("kernel_h").maximum


class Placement:
    """Finds every tensor's view, from the graph alone."""

    def __init__(self, graph: IntGraph, params: HardwareParams) -> None:
        self._graph = graph
        self._params = params
        self._producers: Mapping[str, Node] = {n.output: n for n in graph.nodes}
        self._inside: dict[str, tuple[str, int]] = {}
        self._views: dict[str, View] = {}
        self.buffers: list[Buffer] = []
        # From the last concatenation on: a tensor that is a part of two is stored in the later one.
        for node in reversed(graph.nodes):
            if isinstance(node, Concat) and self.is_regular(node):
                self._allocate_parts(node)

    def is_regular(self, node: Concat) -> bool:
        """Whether every part starts at a word's first byte."""
        # The last part may end inside a word, since no part starts there.
        return all(self._channels(t) % self._params.rows == 0 for t in node.inputs[:-1])

    def is_view(self, node: Slice) -> bool:
        """Whether the slice starts at a word's first byte, so that it needs no copy."""
        return node.start % self._params.rows == 0

    def view(self, tensor: str) -> View:
        """Where a tensor lies."""
        if tensor not in self._views:
            self._views[tensor] = self._find(tensor)
        return self._views[tensor]

    def _channels(self, tensor: str) -> int:
        return self._graph.tensors[tensor].channels

    def _allocate_parts(self, node: Concat) -> None:
        at, index = 0, 0
        while index < len(node.inputs):
            tensor = node.inputs[index]
            covered = self._sliced_whole(node, index)
            if covered:
                tensor, index = node_input(self._producers[tensor]), index + covered
            else:
                index += 1
            if self._may_move(tensor):
                self._inside[tensor] = (node.output, at)
            at += self._channels(tensor)

    def _sliced_whole(self, node: Concat, index: int) -> int:
        """How many parts from `index` on are the consecutive slices of one tensor that may move; 0 if they are not."""
        first = self._producers.get(node.inputs[index])
        if not isinstance(first, Slice) or not self._may_move(node_input(first)):
            return 0
        source, at = node_input(first), 0
        for count, part in enumerate(node.inputs[index:], 1):
            slice_ = self._producers.get(part)
            if not isinstance(slice_, Slice) or node_input(slice_) != source or slice_.start != at:
                return 0
            if not self.is_view(slice_):
                return 0
            at = slice_.stop
            if at == self._channels(source):
                return count
        return 0

    def _may_move(self, tensor: str) -> bool:
        producer = self._producers.get(tensor)
        # The host writes graph inputs before the run, in buffers of their own.
        if producer is None or tensor in self._inside:
            return False
        return not (isinstance(producer, Slice) and self.is_view(producer))

    def _find(self, tensor: str) -> View:
        channels = self._channels(tensor)
        if tensor in self._inside:
            whole, at = self._inside[tensor]
            return self.view(whole).part(at, at + channels)
        producer = self._producers.get(tensor)
        if isinstance(producer, Slice) and self.is_view(producer):
            return self.view(node_input(producer)).part(producer.start, producer.stop)
        shape = self._graph.tensors[tensor]
        # Only inputs can be packed: every unit writes results in blocks of channels.
        layout = Layout.PIXELS4 if producer is None and self._packable(tensor) else Layout.BLOCKED
        buffer = Buffer(tensor, channels, shape.height, shape.width, layout, self._params)
        self.buffers.append(buffer)
        return View(buffer, 0, channels)

    def _packable(self, tensor: str) -> bool:
        """Whether a graph input has few channels and meets only convolutions that can read packed pixels."""
        group = self._params.pixels_per_word
        users = self._graph.consumers(tensor)
        if self._channels(tensor) > PIXEL_CHANNELS or group < 2 or not users or tensor in self._graph.outputs:
            return False
        return all(
            isinstance(n, Conv)
            and not isinstance(n, ConvTranspose)
            and n.group == 1
            and n.dilations[1] == 1
            # The field of the kernel's width counts words of `group` pixels in a packed convolution.
            and n.weights.shape[3] <= _LARGEST_KERNEL * group
            for n in users
        )


def node_input(node: Node) -> str:
    """The only input of a node with one."""
    return node.inputs[0]
