"""Constants of the estimates and searches; the networks of the zoo on the presets chose them, by forecast."""

PRICES: dict[int, tuple[float, ...]] = {0: (), 1: (1.0,), 2: (1.0, 2.0), 3: (1.0, 0.5, 2.0, 4.0)}
"""For each effort, the prices of a moved word that are searched with, in units of `WORD_PRICE`."""

# Passes and the choice of a unit.

PAIR_SHARE = 4
"""Part of the weight memory that an output block of paired pixels may take, so that two fit with their constants."""
DEPTHWISE_ROWS = 4
"""Output rows of a VDEPTHWISE in the choice of a unit: stripes rarely have more."""

# The order of stages.

SPARE_PART = 0.1
"""Part of the cycles of a vector stage that its products must leave to the array before others overlap with it."""

# Groups.

WORD_PRICE = 0.4
"""Cycles that a moved word costs beyond its time, with a memory of one word per cycle; a slower one raises it."""
TASK_PRICE = 12
"""Cycles that a tile's start and end cost on average."""
LOADED_TILE_PRICE = 60
"""The same for a tile whose operands come from DRAM."""
SLOT_PRICE = 150
"""Cycles between two stages of which the second one needs the whole result of the first."""
HIDDEN_PART = 0.6
"""Part of a depthwise convolution of whole tensors that the convolution before it hides, chunk by chunk."""
EXPOSED_PART = 0.5
"""Part of a group's first loads that the group before does not hide."""
LONGEST_GROUP = 24
"""Stages of a group."""
MIN_STEP_PIXELS = 32
"""Pixels of the first stage in each step of stripes: fewer leave strips short."""
MIN_PARALLEL_PIXELS = 16
"""The same with a long stage of the vector unit, with which the array works only in stripes."""

# Tilings of one stage.

MOVED_WORD_PRICE = 0.5
"""Cycles of a word that a tiling moves: most moves overlap with the array."""
EXPOSED_WORD_PRICE = 5
"""Cycles of a word of the first tile's input and the last one's output, which no other work hides."""
TILE_ROOM = 7 / 8
"""Share of the scratchpad that two tiles may take: fuller, and an odd tile leaves no gap for the one after next."""
MAX_TILE_SIZES = 14
"""Heights and widths of a tile that are tried."""
MAX_CHUNK_SIZES = 5
"""Chunk sizes that are tried, largest first, and two more of the smallest."""

# Residency.

SAVED_WORD_PRICE = 4
"""Cycles of a tiling that a word of traffic is worth: tiles of other stages move while the array works."""
PARALLEL_CHUNKS = 8
"""Chunks of a convolution before a depthwise one, which starts when the first chunk is complete."""
PARALLEL_BANDS = 4
"""Tiles of a Softmax or normalization, and of convolutions before and after it, so that both units work."""

# Emission.

LAG = 2
"""Distance in tasks from the producer of a vector task's input to that task: its load need not wait for the store."""
PREFETCH_DEPTH = 4
"""Tasks ahead of the current one whose loads may be emitted before its instructions."""
CODED_PIECE = 512
"""Words that are coded together, and loaded by an instruction of their own."""
MIN_SAVING = 16
"""Words that a code must save: decoding starts some cycles late."""
MIN_PIECE = 128
"""Words of a part of a weight chunk that is worth a load of its own."""
