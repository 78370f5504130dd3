"""Operator lowerings, one operator or one family of operators a file. Importing this package registers them all."""

from intloom.compiler.fold.lowering import (
    average_pool,
    channelwise,
    concat,
    conv,
    conv_transpose,
    elementwise,
    gemm,
    max_pool,
    pad,
    reshape,
    resize,
    slices,
    softmax,
)

__all__ = [
    "average_pool",
    "channelwise",
    "concat",
    "conv",
    "conv_transpose",
    "elementwise",
    "gemm",
    "max_pool",
    "pad",
    "reshape",
    "resize",
    "slices",
    "softmax",
]
