"""The integer graph: what is left of a model when nothing float is left."""

from intloom.compiler.ir.graph import IntGraph
from intloom.compiler.ir.node import Node
from intloom.compiler.ir.ops.add import Add
from intloom.compiler.ir.ops.avg_pool import AvgPool
from intloom.compiler.ir.ops.concat import Concat
from intloom.compiler.ir.ops.constant import Constant
from intloom.compiler.ir.ops.conv import Conv
from intloom.compiler.ir.ops.conv_transpose import ConvTranspose
from intloom.compiler.ir.ops.custom import Custom
from intloom.compiler.ir.ops.matmul import MatMul
from intloom.compiler.ir.ops.max_pool import MaxPool
from intloom.compiler.ir.ops.mul import Mul
from intloom.compiler.ir.ops.norm import Norm
from intloom.compiler.ir.ops.resize import Resize
from intloom.compiler.ir.ops.slices import Slice
from intloom.compiler.ir.ops.softmax import Softmax
from intloom.compiler.ir.ops.table import Table
from intloom.compiler.ir.tensor import Tensor

__all__ = [
    "Add",
    "AvgPool",
    "Concat",
    "Constant",
    "Conv",
    "ConvTranspose",
    "Custom",
    "IntGraph",
    "MatMul",
    "MaxPool",
    "Mul",
    "Node",
    "Norm",
    "Resize",
    "Slice",
    "Softmax",
    "Table",
    "Tensor",
]
