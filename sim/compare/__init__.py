"""Byte-for-byte comparison of results, and the search for where two runs first part."""

from intloom.sim.compare.tensors import Comparison, Mismatch, compare

__all__ = ["Comparison", "Mismatch", "compare"]
