"""Names of biases that several layers share."""

import onnx

from intloom.quantization.graph_index import GraphIndex


def rename_shared_biases(model: onnx.ModelProto) -> bool:
    """Rename constants of which onnxruntime's quantizer makes copies with names that are taken.

    onnxruntime 1.31 names the copies of a shared bias `b` after its constants only: `b0`, `b1`. A layer's output of
    that name is replaced by the bias. Returns whether there was any.
    """
    index = GraphIndex(model.graph)
    taken = (*index.makers, *(i.name for i in model.graph.input))
    # What a value's name is without some of its last digits.
    stems = {v[:end] for v in taken for end in range(len(v.rstrip("0123456789")), len(v))}
    shared = [name for name in index.constants if len(index.readers(name)) > 1 and name in stems]
    for old in shared:
        new = f"{old}/shared_constant"
        for node in index.readers(old):
            node.input[:] = [new if value == old else value for value in node.input]
        index.constants[old].name = new
    return bool(shared)
