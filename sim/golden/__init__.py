"""The golden model: the meaning of the integer graph, one operation a file. Importing the files registers them."""

from intloom.sim.golden import add, avgpool, concat, conv, conv_transpose, custom, maxpool, mul, resize, slices, table
from intloom.sim.golden.run import run_graph

__all__ = [
    "add",
    "avgpool",
    "concat",
    "conv",
    "conv_transpose",
    "custom",
    "maxpool",
    "mul",
    "resize",
    "run_graph",
    "slices",
    "table",
]
