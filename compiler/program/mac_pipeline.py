"""The forecast's MAC unit: the array fills one accumulator bank while the readout empties the other one.

A strip's sums need a bank, which the strip before the last one leaves when its last sum is read. The readout takes the
strips in order and needs their block's constants. So the array may wait for the readout, and the readout for the array,
also from one instruction to the next.
"""

from dataclasses import dataclass
from functools import cached_property

from intloom.compiler.program.cost import array_strips, first_constants, late_tile
from intloom.hw.spec import timing
from intloom.hw.spec.isa import Instruction
from intloom.hw.spec.params import HardwareParams

_REQUESTED_BLOCKS = 3
"""Blocks whose constants may be requested and not yet loaded: one in the loader, two in the buffer before it."""
_WRITE = timing.MAC_END - timing.LAST_SUM
"""Last item of an instruction to its end."""


@dataclass(frozen=True)
class _Strip:
    array: int
    """Cycles of the array."""
    lead: int
    """First word to the readout's first item."""
    readout: int
    """Cycles of the readout."""


@dataclass(frozen=True)
class ConvShape:
    """What a CONV needs of the array, the readout and the constants loader."""

    strips: tuple[_Strip, ...]
    """Of an output block, in order."""
    blocks: int
    first_constants: int
    """Cycles in which the constants of the first block are loaded; with the table and the residual's constants."""
    constants: int
    """Cycles in which a block's constants are loaded."""
    residual: int
    continued: int
    """It starts from the sums of the instruction before, so both banks must be free."""
    prefetch: int
    """Cycles from the read of the last weights to the end of the array's work."""

    @cached_property
    def array(self) -> int:
        """Array cycles of an output block."""
        return sum(s.array for s in self.strips)

    @cached_property
    def steady(self) -> bool:
        """Whether the array never waits again once the readout is no further behind than its strip."""
        least = min(s.array for s in self.strips)
        in_time = all(s.readout <= least and s.lead + s.readout <= 2 * least for s in self.strips)
        return in_time and self.array > self.constants + timing.CONSTANTS_GAP


def conv_shape(i: Instruction, params: HardwareParams) -> ConvShape:
    """The shape of a CONV."""
    each, late = params.cols // params.lanes, late_tile(i, params)
    strips: list[_Strip] = []
    tile = 0
    for pixels, cycles, tile in array_strips(i, params):
        array = cycles + (0 if strips else late)
        # The readout follows the sums of the last tile.
        lead = array + timing.LAST_SUM - tile
        readout = pixels * each
        if i["residual"] and each > 1:
            readout += min(array, readout) // _conflict_period(each, params)
        strips.append(_Strip(array, lead, readout))
    return ConvShape(
        strips=tuple(strips),
        blocks=i["out_blocks"],
        first_constants=first_constants(i, params),
        constants=2 * params.cols,
        residual=i["residual"],
        continued=i["continue_sums"],
        # The last weight tile is read when the one before the previous tile leaves the shadow registers.
        prefetch=2 * tile - params.cols,
    )


def _conflict_period(each: int, params: HardwareParams) -> int:
    """Cycles from one read of a residual operand that waits for a pixel to the next one.

    Pixels advance a bank in every cycle, operands a bank in `each` cycles.
    """
    return params.scratch_banks * each // (each - 1)


class MacPipeline:
    """State of the MAC unit after the instructions that it was given."""

    def __init__(self) -> None:
        self._array = 0
        """End of the array's work."""
        self._banks = (0, 0)
        """End of the readout of the last two strips."""
        self._loaded = 0
        """End of the load of the last constants."""
        self._ends = (0, 0)
        """End of the last two instructions."""
        self._last: ConvShape | None = None

    def run(self, shape: ConvShape, ready: int) -> tuple[int, int]:
        """Execute a CONV whose first weights are in the array at `ready`; returns its start and end."""
        start = max(ready, self._array + timing.MAC_GAP, self._ends[0] + timing.NEXT_DECODE)
        fetched = self._array - (self._last.prefetch if self._last else 0)
        asked = max(ready, self._loaded + timing.CONSTANTS_GAP, fetched)
        self._execute(shape, start, asked + shape.first_constants)
        end = self._banks[1] + _WRITE + timing.RESIDUAL * shape.residual
        # Instructions complete in order, at most one per cycle.
        self._ends = self._ends[1], max(end, self._ends[1] + 1)
        self._last = shape
        return start, self._ends[1]

    def _execute(self, shape: ConvShape, at: int, constants: int) -> None:
        older, newer = self._banks
        block_end, begin = newer, newer + timing.NEXT_READOUT + self._exclusive(shape)
        loaded = [constants] * _REQUESTED_BLOCKS
        for block in range(shape.blocks):
            if block >= _REQUESTED_BLOCKS:
                at = max(at, loaded[0] + timing.FIRST_TILE)
            begin = max(begin, loaded[-1] + timing.CONSTANTS_READ)
            for strip in shape.strips:
                first = max(at, (newer if shape.continued else older) + timing.BANK_RELEASE)
                at = first + strip.array
                older, newer = newer, max(begin, newer, first + strip.lead) + strip.readout
            following = max(loaded[-1] + timing.CONSTANTS_GAP, block_end + timing.SET_RELEASE) + shape.constants
            loaded, block_end = [*loaded[1:], following], newer
            if shape.steady and newer <= at + shape.strips[0].array:
                rest = (shape.blocks - 1 - block) * shape.array
                at, older, newer = at + rest, older + rest, newer + rest
                break
        self._array, self._banks, self._loaded = at, (older, newer), loaded[-2]

    def _exclusive(self, shape: ConvShape) -> int:
        """What the readout waits before and after an instruction with residual: the epilogue must be empty."""
        before = self._last.residual if self._last else 0
        return timing.EPILOGUE + timing.RESIDUAL * before if before or shape.residual else 0
