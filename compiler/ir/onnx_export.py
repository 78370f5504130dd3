"""Integer graphs as ONNX files that Netron opens and onnxruntime runs, with the same bytes.

Convolutions become QLinearConv in int8 with scales of one; tables become Gather; affine operations become int64
arithmetic. The importer's emitter writes the file.
"""

from intloom.compiler.importer import Constant, Model, OnnxNode, ValueType, to_bytes
from intloom.compiler.ir.graph import IntGraph
from intloom.compiler.ir.onnx_writer import Writer

_OPSET = 17


def to_onnx(graph: IntGraph) -> bytes:
    """The graph as a serialized ONNX model in mode `ort`, with int8 inputs and outputs.

    Raises
    ------
    UnsupportedError
        The graph has a custom operation, or a transposed convolution of very many products.
    """
    writer = Writer()
    for node in graph.nodes:
        node.export(writer, graph.tensors)
    nodes, constants = written(writer)
    types = {n: ValueType("int8", graph.tensors[n].shape) for n in (*graph.inputs, *graph.outputs)}
    return to_bytes(Model(graph.name, tuple(nodes), graph.inputs, graph.outputs, constants, types, {"": _OPSET}))


def written(w: Writer) -> tuple[list[OnnxNode], dict[str, Constant]]:
    """The nodes and constants of a writer for a model."""
    nodes = [OnnxNode(f"{n.output}/{n.op}", n.op, n.inputs, (n.output,), n.attributes) for n in w.nodes]
    names = {"float32": "float"}
    return nodes, {n: Constant(a, names.get(str(a.dtype), str(a.dtype))) for n, a in w.constants.items()}
