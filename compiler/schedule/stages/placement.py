"""Where tensors lie: rectangles of pixels, buffers in memory, views of them, and tiles in the scratchpad.

Concatenations need no copies, slices are views, everything else has a buffer of its own. A concatenation is *regular*
when every part starts at a word's first byte. Then a part that is written only for it (or for it first) is written
straight to its address; so is a tensor whose slices are consecutive parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from intloom.compiler.ir import Concat, Constant, Conv, ConvTranspose, IntGraph, Node, Slice
from intloom.compiler.limits import LARGEST_KERNEL, LARGEST_STRIDE
from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.compiler.program.memory import PIXEL_CHANNELS, channel_blocks, row_words
from intloom.compiler.program.program import Layout
from intloom.hw.spec.params import HardwareParams


class Rect(NamedTuple):
    """Rows y0 to y1 and columns x0 to x1 (half-open)."""

    y0: int
    y1: int
    x0: int
    x1: int

    @property
    def height(self) -> int:
        """Rows."""
        return self.y1 - self.y0

    @property
    def width(self) -> int:
        """Columns."""
        return self.x1 - self.x0

    @property
    def area(self) -> int:
        """Pixels."""
        return self.height * self.width

    def scaled(self, factor_h: int, factor_w: int) -> Rect:
        """The same rectangle in a tensor enlarged by these factors."""
        return Rect(self.y0 * factor_h, self.y1 * factor_h, self.x0 * factor_w, self.x1 * factor_w)

    def overlaps(self, other: Rect) -> bool:
        """Whether they share a pixel."""
        return self.y0 < other.y1 and other.y0 < self.y1 and self.x0 < other.x1 and other.x0 < self.x1


def runs_of(blocks: Iterable[int]) -> list[tuple[int, int]]:
    """Blocks as (first, count) of neighbors, in order."""
    runs: list[tuple[int, int]] = []
    for block in sorted(blocks):
        if runs and sum(runs[-1]) == block:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((block, 1))
    return runs


@dataclass(frozen=True, eq=False)
class Buffer:
    """Storage of a tensor, or of several that lie side by side along channels; `width` counts pixels."""

    name: str
    channels: int
    height: int
    width: int
    layout: Layout
    params: HardwareParams

    @property
    def blocks(self) -> int:
        """Channel blocks."""
        return channel_blocks(self.channels, self.params) if self.layout is Layout.BLOCKED else 1

    @cached_property
    def columns(self) -> int:
        """Words of a row of a block."""
        return row_words(self.width, self.layout, self.params)

    @cached_property
    def plane(self) -> int:
        """Words of a block."""
        return self.height * self.columns

    @property
    def words(self) -> int:
        """Words in all."""
        return self.blocks * self.plane


@dataclass(frozen=True)
class View:
    """Channels `channel` to `channel + channels` of a buffer."""

    buffer: Buffer
    channel: int
    channels: int

    @property
    def shape(self) -> tuple[int, int, int, Layout]:
        """Channels, rows and columns, and the layout of the buffer."""
        return self.channels, self.buffer.height, self.buffer.width, self.buffer.layout

    @property
    def lane(self) -> int:
        """The byte of a word that holds the first channel."""
        return self.channel % self.buffer.params.rows

    @property
    def first_block(self) -> int:
        """The buffer's block that holds the first channel."""
        return self.channel // self.buffer.params.rows

    @property
    def blocks(self) -> int:
        """Blocks, when the view starts at a block's first byte."""
        return -(-self.channels // self.buffer.params.rows)

    @property
    def block_range(self) -> range:
        """The buffer's blocks that the view covers, when it starts at a block's first byte."""
        return range(self.first_block, self.first_block + self.blocks)

    @property
    def touched_blocks(self) -> range:
        """The buffer's blocks that have channels of the view."""
        return range(self.first_block, (self.channel + self.channels - 1) // self.buffer.params.rows + 1)

    @property
    def aligned(self) -> bool:
        """Whether it starts at a block's first byte."""
        return self.lane == 0

    def part(self, start: int, stop: int) -> View:
        """Channels `start` to `stop` of this view."""
        return View(self.buffer, self.channel + start, stop - start)


@dataclass(frozen=True)
class Tile:
    """Blocks of a rectangle in the scratchpad: the word of (block b, y, x) is base + b*plane + (y-y0)*row + x-x0.

    With `ring`, row y - y0 is taken modulo that number of rows.
    """

    base: int
    plane: int
    row: int
    y0: int
    x0: int
    ring: int = 0

    def word(self, block: int = 0, y: int | None = None, x: int | None = None) -> int:
        """A word's address, modulo the address space; without y or x, of the tile's first row or column."""
        dy = 0 if y is None else (y - self.y0) % self.ring if self.ring else y - self.y0
        dx = 0 if x is None else x - self.x0
        return (self.base + block * self.plane + dy * self.row + dx) % ADDRESS_SPACE

    def fields(self, name: str, y: int | None = None, x: int | None = None, block: int = 0) -> dict[str, int]:
        """An instruction's fields for the operand or result `name` that begins at this word."""
        return {f"{name}_base": self.word(block, y, x), f"{name}_plane": self.plane, f"{name}_row": self.row}

    def at(self, base: int) -> Tile:
        """The same rows and columns from another word on."""
        return Tile(base, self.plane, self.row, self.y0, self.x0, self.ring)

    def straight(self, low: int, high: int) -> Iterator[tuple[int, int, Tile]]:
        """Rows `low` to `high` (half-open) as runs that do not wrap, each with a tile without ring that holds it."""
        while low < high:
            stop = min(high, low - (low - self.y0) % self.ring + self.ring) if self.ring else high
            base = (self.word(0, low) - (low - self.y0) * self.row) % ADDRESS_SPACE
            yield low, stop, replace(self, base=base, ring=0)
            low = stop


def window_rect(out: Rect, first: tuple[int, int], stride: tuple[int, int], reach: tuple[int, int]) -> Rect:
    """Input coordinates under windows of `reach` pixels that start at `first` for output (0, 0); not clipped."""
    top, bottom, left, right = out
    y0 = first[0] + top * stride[0]
    x0 = first[1] + left * stride[1]
    y1 = first[0] + (bottom - 1) * stride[0] + reach[0]
    x1 = first[1] + (right - 1) * stride[1] + reach[1]
    return Rect(y0, y1, x0, x1)


def clip(rect: Rect, height: int, width: int) -> Rect:
    """The part of a rectangle inside a tensor; never empty, so that there is always something to load."""
    y0, y1, x0, x1 = rect
    return Rect(*_clipped(y0, y1, height), *_clipped(x0, x1, width))


def _clipped(first: int, stop: int, length: int) -> tuple[int, int]:
    first = min(max(first, 0), length - 1)
    return first, max(min(stop, length), first + 1)


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
        # The host writes graph inputs before the run, in buffers of their own; constants are in the image.
        if producer is None or isinstance(producer, Constant) or tensor in self._inside:
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
            and n.strides[1] <= LARGEST_STRIDE
            # The field of the kernel's width counts words of `group` pixels in a packed convolution.
            and n.weights.shape[3] <= LARGEST_KERNEL * group
            for n in users
        )


def node_input(node: Node) -> str:
    """The only input of a node with one."""
    return node.inputs[0]
