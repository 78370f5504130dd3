"""Model zoo: published topologies as float ONNX models, with seeded weights and non-degenerate activations."""

from intloom.zoo.catalog import ZOO, Entry, build, entry

__all__ = ["ZOO", "Entry", "build", "entry"]
