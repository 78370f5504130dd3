"""Latencies and rates of the accelerator, in clock cycles.

Every figure is stated here once. Hardware components take their latencies from this module or are tested against it;
the cycle forecast and the manual derive from it. A latency counts from the cycle in which the first-named event happens
to the cycle in which the second one happens.

Where an end-to-end latency contains the pipelines of known components, it is their sum and one remainder. The
remainders are measured on the RTL; the comparison of forecast and RTL cycles holds them.
"""

# Memory ports.

SCRATCHPAD_READ = 5
"""Accepted read to data: request register, bank input register, block RAM, its output register, return register."""
WEIGHT_READ = SCRATCHPAD_READ + 1
"""Accepted weight read to data: one register more, so that a weight word and a pixel word arrive together."""

# Control.

HALT = 4
"""Halt to the last cycle in which a unit may not have seen it; `bus_idle` is ignored until then."""

# Pipelines of components: input to result.

AFFINE = 7
"""An affine lane: the vector unit's arithmetic and the residual adder."""
PIXEL_FETCH = 2 + SCRATCHPAD_READ
"""Pixel position to pixel word at the array."""
ACCUMULATOR_WRITE = 2
"""Dot product to the accumulator memory that holds it."""
ACCUMULATOR_READ = 3
"""Read address to sum."""
REQUANTIZE = 12
"""Sum to byte."""
TABLE_LOOKUP = 2
"""Byte to table entry."""
EPILOGUE = ACCUMULATOR_READ + REQUANTIZE + TABLE_LOOKUP
"""Readout item to result byte, without a residual."""

PRODUCT = 2
"""Operands of an int8 product to the product: the multiplier's output register and one beside the adders."""
ARRAY_FRONT = 2 + PRODUCT
"""Pixel word to its products: routing register, multiplier input, product."""


def array_latency(rows: int) -> int:
    """Pixel word to its dot products: the multiplier pipeline and one register for each level of the adder tree."""
    return ARRAY_FRONT + (rows - 1).bit_length()


# The vector unit.

SLIDING_TAPS = 5
"""The longest one-dimensional maximum window whose input words are read once each; longer ones read each window."""
VECTOR_END = 32
"""Last word read by a vector instruction to its end."""
SOFTMAX_END = 52
"""Last bytes read by VSOFTMAX to its end."""
NORM_FACTORS = 19
"""Last bytes of a pixel's first pass in VNORM to its second pass, without the levels of the adder tree."""
NORM_END = 41
"""Last bytes read by VNORM to its end."""
DEPTHWISE_START = 10
"""Start of VDEPTHWISE to its first input word, without one cycle for each word of its weights."""
DEPTHWISE_FIRST = 9
"""Last word of the weights of VDEPTHWISE to the first word that may complete a result: biases and scales are loaded."""
DEPTHWISE_END = 27
"""Last input word of VDEPTHWISE to its end."""
DEPTHWISE_JOINED = 10
"""Cycles by which VDEPTHWISE starts before the end of the one before it, at most, if its waits are satisfied."""
DEPTHWISE_PACKED = 1.85
"""Cycles of a word of VDEPTHWISE while the array reads packed pixels: two words a cycle, of two of four banks.

Measured on the RTL.
"""
VECTOR_TABLE_LOAD = 15
"""Cycles of VTABLE and VEXP in addition to one cycle per table byte."""

# Instruction issue.

PREFETCH_INSTRUCTIONS = 16
"""Least depth of the prefetch queue in instructions: with the units' queues it covers memory latencies of hundreds of
cycles."""
FIRST_FETCH = 41
"""Start command to the first instruction's start, without the memory's latency."""
UNIT_START = 2
"""The last wait satisfied to the start of a load, store or vector instruction."""

# The MAC unit.

MAC_START = 17
"""The last wait satisfied to the first product of a CONV, if the unit is idle: its first weight tile is read."""
MAC_GAP = 1
"""Last product of a CONV to the first one of the next, which is ready."""
CONSTANTS_GAP = 2
"""Cycles between the constants of consecutive output blocks."""
ZERO_POINTS = 1
"""Last word of an output block's zero points to the block's first weight, without the read of that weight."""
NEXT_DECODE = MAC_START + 7
"""End of a CONV to the first product of the one after the next, whose descriptors wait for that end."""
BANK_RELEASE = 2
"""Last readout item of a strip to the first word of the strip that follows in its accumulator bank."""
NEXT_READOUT = 4
"""Last readout item of a CONV to the first one of the next, whose descriptor is taken in between."""
CONSTANTS_READ = 4
"""Last constant of an output block to the block's first readout item."""
SET_RELEASE = 18
"""Last readout item of an output block to the first constant that may be stored in its set."""
FIRST_TILE = 20
"""Constants of an output block loaded to the first word of the block whose request waited for room in the buffer."""

_FORECAST_ROWS = 16
_RESULT_PATH = 6
"""Strip ready to its last readout item, result FIFO, scratchpad write and end of the instruction."""
LAST_SUM = PIXEL_FETCH + array_latency(_FORECAST_ROWS) + ACCUMULATOR_WRITE
"""Last word of a strip to the readout of its sum, on an array of 16 rows."""
MAC_END = LAST_SUM + EPILOGUE + _RESULT_PATH
"""Last product issued by a CONV to its last result word in the scratchpad, on an array of 16 rows."""
_RESIDUAL_PATH = 12
"""The residual operand's read and the registers around the adder."""
RESIDUAL = AFFINE + _RESIDUAL_PATH
"""What a residual adds to `MAC_END`."""

# The memory port.

LOAD = 8
"""What a load adds to the memory's read latency."""
STORE = 13
"""What a store adds to the memory's write latency."""
LOAD_TRIP = 1.5
"""What the end of a load's burst adds to the memory's latency, until the first word of the burst in its place."""
STORE_TRIP = 4
"""The same for a store."""
RUN = 3
"""The least time that a contiguous run of a load or store takes."""
CODED_RUN = 4
"""What a coded run adds to a load: the decoder starts, takes a beat and its first widths, and makes a word."""
QUEUED_BURSTS = 2
"""Bursts that a move may hold in registers while `axi_outstanding` bursts are in flight."""
RESULT_CONFLICTS = 0.5
"""Fraction of the cycles of a result's write in which a load waits for its bank, while few bursts are in flight.

Measured on the RTL. With more of them, which the forecast does not follow one by one, it is 1.
"""
CONTENDED_RATE = 0.56
"""Words per cycle that a load or store moves while the vector unit accesses a word every second cycle.

Their bank conflicts repeat, so the rate is near one half; the vector unit's pauses raise it. Measured
on the RTL.
"""
DEPTHWISE_LOAD_RATE = 0.92
"""Words per cycle that a load moves during a VDEPTHWISE, whose results are at least four cycles apart.

Measured on the RTL with four banks: 0.94 at stride 1, 0.89 at stride 2.
"""
DEPTHWISE_STORE_RATE = 0.85
"""Words per cycle that a store moves during a VDEPTHWISE, which reads up to a word a cycle.

Measured on the RTL with four banks and rows of an odd number of words: 0.82 at stride 1, 0.99 at stride 2.
"""
