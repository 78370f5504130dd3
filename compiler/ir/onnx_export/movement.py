"""Operators that move or select bytes."""

from __future__ import annotations

import numpy as np

from intloom.compiler.ir import Concat, Constant, IntGraph, MaxPool, Resize, Slice
from intloom.compiler.ir.onnx_export.writer import Writer, exports


@exports(MaxPool)
def maxpool(w: Writer, graph: IntGraph, node: MaxPool) -> None:
    """MaxPool."""
    w.op("MaxPool", node.inputs, node.output, kernel_shape=node.kernel, strides=node.strides, pads=node.pads)


@exports(Resize)
def resize(w: Writer, graph: IntGraph, node: Resize) -> None:
    """Nearest neighbor by integer factors."""
    scales = w.constant(np.array([1, 1, *node.factors], np.float32), "float")
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    w.op("Resize", (node.inputs[0], "", scales), node.output, **modes)


@exports(Concat)
def concat(w: Writer, graph: IntGraph, node: Concat) -> None:
    """Concat of channels."""
    w.op("Concat", node.inputs, node.output, axis=1)


@exports(Slice)
def slices(w: Writer, graph: IntGraph, node: Slice) -> None:
    """Slice of channels."""
    bounds = (w.constant(np.array([v], np.int64), "int64") for v in (node.start, node.stop, 1))
    w.op("Slice", (node.inputs[0], *bounds), node.output)


@exports(Constant)
def constant(w: Writer, graph: IntGraph, node: Constant) -> None:
    """A stored tensor."""
    w.op("Identity", (w.constant(node.values[None], "int8"),), node.output)
