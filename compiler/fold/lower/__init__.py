"""The lowerings: one operator, or one family with the same meaning, a file. Importing them registers them."""

from intloom.compiler.fold.lower import (
    channelwise,
    concat,
    conv,
    conv_transpose,
    elementwise,
    gemm,
    maxpool,
    pad,
    pool,
    reshape,
    resize,
    slices,
    softmax,
)

__all__ = [
    "channelwise",
    "concat",
    "conv",
    "conv_transpose",
    "elementwise",
    "gemm",
    "maxpool",
    "pad",
    "pool",
    "reshape",
    "resize",
    "slices",
    "softmax",
]
