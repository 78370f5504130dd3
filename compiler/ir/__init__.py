"""The integer graph: what is left of a model when nothing float is left."""

from intloom.compiler.ir.graph import IntGraph, Tensor
from intloom.compiler.ir.ops import (
    Add,
    AvgPool,
    Concat,
    Conv,
    ConvTranspose,
    Custom,
    MaxPool,
    Mul,
    Node,
    Resize,
    Slice,
    Table,
)

__all__ = [
    "Add",
    "AvgPool",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Custom",
    "IntGraph",
    "MaxPool",
    "Mul",
    "Node",
    "Resize",
    "Slice",
    "Table",
    "Tensor",
]
