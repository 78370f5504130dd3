"""The zoo: published topologies as float ONNX models, with seeded weights that keep every layer alive."""

from .catalogue import ZOO, Entry, build, entry

__all__ = ["ZOO", "Entry", "build", "entry"]
