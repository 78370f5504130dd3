"""Limits of instructions and memories for lowering and scheduling, from the instruction table and the presets."""

from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import PRESETS, HardwareParams


def _most_channels(p: HardwareParams) -> int:
    constants = p.table_words + p.channel_words + p.zero_point_words
    return (p.weight_words - constants) // p.tile_words * p.word_bytes


LARGEST_KERNEL = BY_KIND[Kind.CONV].field("kernel_h").maximum
"""Kernel rows or columns of a convolution."""
LARGEST_STRIDE = BY_KIND[Kind.CONV].field("stride_h").maximum
"""Stride of a convolution."""
LARGEST_DILATION = BY_KIND[Kind.CONV].field("dilation_h").maximum
"""Dilation of a convolution."""
LARGEST_SIZE = BY_KIND[Kind.CONV].field("in_w").maximum
"""Rows or columns of an image."""
LARGEST_WINDOW = BY_KIND[Kind.VMAX].field("kernel_h").maximum
"""Rows or columns of a window of the vector unit."""
LARGEST_FACTOR = BY_KIND[Kind.VCOPY].field("up_h").maximum
"""Factor by which a copy repeats pixels."""
MOST_CHANNELS = min(_most_channels(p) for p in PRESETS.values())
"""Input channels of a product whose weights for one output block, with a table, fit the memory of every preset."""
