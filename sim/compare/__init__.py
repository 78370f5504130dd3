"""Byte-for-byte comparison of results, and the search for where two runs first part."""

from intloom.sim.compare.tensors import Comparison, compare, compare_tensor

__all__ = ["Comparison", "compare", "compare_tensor"]
