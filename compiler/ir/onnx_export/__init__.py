"""Integer graphs as ONNX files that Netron opens and onnxruntime runs, with the same bytes.

Convolutions become QLinearConv in int8 with scales of one; tables become Gather, whose negative indices count from the
end just as `value & 0xFF` does; affine operations become int64 arithmetic. The importer's emitter writes the file.
"""

from __future__ import annotations

from intloom.common.discovery import import_submodules
from intloom.common.errors import UnsupportedError
from intloom.compiler.importer import Model, ValueType, to_bytes
from intloom.compiler.ir import IntGraph
from intloom.compiler.ir.onnx_export.writer import EXPORTS, Writer

_OPSET = 17

import_submodules(__name__)


def to_onnx(graph: IntGraph) -> bytes:
    """The graph as a serialized ONNX model in mode `ort`, with int8 inputs and outputs.

    Raises
    ------
    UnsupportedError
        The graph has a custom operation, or a transposed convolution of very many products.
    """
    writer = Writer()
    for node in graph.nodes:
        if type(node) not in EXPORTS:
            raise UnsupportedError(f"node {node.name!r}: {type(node).__name__} has no form in ONNX")
        EXPORTS[type(node)](writer, graph, node)
    types = {n: ValueType("int8", graph.tensors[n].shape) for n in (*graph.inputs, *graph.outputs)}
    model = Model(graph.name, tuple(writer.nodes), graph.inputs, graph.outputs, writer.constants, types, {"": _OPSET})
    return to_bytes(model)
