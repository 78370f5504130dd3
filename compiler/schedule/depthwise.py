"""Depthwise convolutions with kernel taps on the array's rows: the mode, and the cut of a tile into instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from intloom.compiler.program.cost import conv_busy
from intloom.compiler.schedule.convolution import Geometry, Weights
from intloom.compiler.schedule.geometry import Rect
from intloom.hw.spec.depthwise import DEPTHWISE_MODES, tap_rows
from intloom.hw.spec.formats import conv_tiles
from intloom.hw.spec.isa import ConvMode, Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams


@dataclass(frozen=True)
class DepthwiseCut:
    """Instructions of at most `rows` output rows, which share weights made for columns of `column_rows` words."""

    params: HardwareParams
    geometry: Geometry
    mode: ConvMode
    rows: int
    column_rows: int
    blocks: int = 2
    """Output blocks of the stage, at most 2: instructions of a single one take longer."""

    def conv(self, height: int = 1, width: int = 1, blocks: int = 1) -> Instruction:
        """The shape of an instruction for `blocks` blocks of an output of `height` rows and `width` columns."""
        g = self.geometry
        return make(
            Kind.CONV, mode=self.mode, in_blocks=self.column_rows, kernel_h=g.kernel[0], kernel_w=g.kernel[1],
            stride_h=g.stride[0], stride_w=g.stride[1], dilation_h=g.dilation[0], dilation_w=g.dilation[1],
            out_h=height, out_w=width, out_blocks=blocks,
        )  # fmt: skip

    @cached_property
    def tiles(self) -> int:
        """Weight tiles of an output block."""
        return conv_tiles(self.conv())

    def parts(self, rect: Rect) -> Iterator[Rect]:
        """An output tile cut into those of its instructions; columns evenly."""
        for y in range(rect.y0, rect.y1, self.rows):
            bottom = min(y + self.rows, rect.y1)
            count = -(-rect.width // (self.params.strip // (bottom - y)))
            edges = [rect.x0 + rect.width * k // count for k in range(count + 1)]
            yield from (Rect(y, bottom, a, b) for a, b in pairwise(edges))

    def cycles(self, height: int, width: int, blocks: int = 2) -> int:
        """Cycles of one block of a tile of `blocks` blocks."""
        bands = {self.rows: height // self.rows, height % self.rows: 1}
        least = min(blocks, self.blocks)
        return sum(count * self._band_cycles(rows, width, least) for rows, count in bands.items() if rows)

    def _band_cycles(self, rows: int, width: int, blocks: int) -> int:
        """Cycles of the parts with the same rows; their widths are equal, or differ by one."""
        count = -(-width // (self.params.strip // rows))
        least, wider = divmod(width, count)
        found = (count - wider) * conv_busy(self.conv(rows, least, blocks), self.params)
        found += wider * conv_busy(self.conv(rows, least + 1, blocks), self.params) if wider else 0
        return found // blocks

    def for_tiles(self, heights: Sequence[int], width: int) -> DepthwiseCut:
        """The cheapest cut of output tiles of these heights, in the same mode: they share their weights."""
        tiles = tuple(sorted(Counter(heights).items()))
        return _best(self.params, self.geometry, self.mode, tiles, width, self.blocks) or self

    @property
    def fits(self) -> bool:
        """Whether every tap has an array row."""
        return max(row for row, _, _ in tap_rows(self.conv())) < self.params.rows

    def weight_tiles(self, weights: Weights, blocks: Sequence[int]) -> Weights:
        """Weight tiles [block, tile, column, lane] of some output blocks; missing channels are zero."""
        cols = self.params.cols
        padded = np.zeros((-(-len(weights) // cols) * cols, *weights.shape[2:]), weights.dtype)
        padded[: len(weights)] = weights[:, 0]
        chosen = padded.reshape(-1, cols, *weights.shape[2:])[list(blocks)]
        tiles = np.zeros((len(chosen), self.tiles, cols, self.params.rows), weights.dtype)
        for row, ky, kx in tap_rows(self.conv()):
            for tile in range(self.tiles):
                tiles[:, tile, :, row] = chosen[:, :, ky + tile, kx]
        return tiles


def depthwise_cut(
    geometry: Geometry, extent: tuple[int, int], params: HardwareParams, blocks: int = 2
) -> DepthwiseCut | None:
    """The cheapest cut of `blocks` output blocks of `extent`, or None if a diagonal tile for each tap is as fast."""
    height, width = extent
    found = [_best(params, geometry, mode, ((height, 1),), width, min(blocks, 2)) for mode in DEPTHWISE_MODES]
    fitting = [cut for cut in found if cut is not None]
    if not fitting:
        return None
    best = min(fitting, key=lambda cut: cut.cycles(height, width))
    diagonal = height * width * max(geometry.kernel[0] * geometry.kernel[1], params.cols // params.lanes)
    return best if best.cycles(height, width) < diagonal else None


@cache
def _best(
    params: HardwareParams,
    geometry: Geometry,
    mode: ConvMode,
    tiles: tuple[tuple[int, int], ...],
    width: int,
    blocks: int,
) -> DepthwiseCut | None:
    """The cheapest cut in one mode of tiles (height, count), or None if the kernel does not fit the array's rows."""
    reach = geometry.reach[0] if mode is ConvMode.DEPTHWISE else 1
    fitting = []
    for rows in range(1, min(max(height for height, _ in tiles), params.strip) + 1):
        cut = DepthwiseCut(params, geometry, mode, rows, reach + (rows - 1) * geometry.stride[0], blocks)
        if not cut.fits:
            break
        fitting.append(cut)
    return min(fitting, key=lambda cut: sum(n * cut.cycles(h, width) for h, n in tiles), default=None)
