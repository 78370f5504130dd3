"""The lowerings: one operator, or one family of operators with the same meaning, a file. Importing them registers them."""

from . import concat, conv, elementwise, maxpool, resize, slices

__all__ = ["concat", "conv", "elementwise", "maxpool", "resize", "slices"]
