"""The lowerings: one operator, or one family with the same meaning, a file. Importing them registers them."""

from . import concat, conv, conv_transpose, elementwise, gemm, maxpool, pool, reshape, resize, slices

__all__ = [
    "concat",
    "conv",
    "conv_transpose",
    "elementwise",
    "gemm",
    "maxpool",
    "pool",
    "reshape",
    "resize",
    "slices",
]
