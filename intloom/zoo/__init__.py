"""The zoo: published topologies as float ONNX models, with seeded weights that keep every layer alive."""

from intloom.zoo.catalog import ZOO, Entry, build, entry

__all__ = ["ZOO", "Entry", "build", "entry"]
