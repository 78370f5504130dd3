"""Limits of the instructions that operator lowerings use, from the instruction table."""

from __future__ import annotations

from intloom.hw.spec.isa import BY_KIND, Kind

LARGEST_KERNEL = BY_KIND[Kind.CONV].field("kernel_h").maximum
"""Kernel rows or columns of a convolution."""
LARGEST_STRIDE = BY_KIND[Kind.CONV].field("stride_h").maximum
"""Stride of a convolution."""
LARGEST_FACTOR = BY_KIND[Kind.VCOPY].field("up_h").maximum
"""Upsampling factor of a copy."""
LARGEST_WINDOW = BY_KIND[Kind.VMAX].field("kernel_h").maximum
"""Rows or columns of a window of the vector unit."""
