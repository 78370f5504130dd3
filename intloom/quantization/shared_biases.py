"""Names of biases that several layers share."""

import re

import onnx

from intloom.quantization.graph_index import GraphIndex


def rename_shared_biases(model: onnx.ModelProto) -> bool:
    """Rename constants of which onnxruntime's quantizer makes copies with names that are taken.

    onnxruntime 1.31 names the copies of a shared bias `b` after its constants only: `b0`, `b1`. A layer's output of
    that name is replaced by the bias. Returns whether there was any.
    """
    index = GraphIndex(model.graph)
    taken = {*index.makers, *(i.name for i in model.graph.input)}
    renamed = {}
    for name in index.constants:
        pattern = re.compile(rf"{re.escape(name)}\d+")
        if len(index.readers(name)) > 1 and any(pattern.fullmatch(value) for value in taken):
            renamed[name] = f"{name}/shared_constant"
    for old, new in renamed.items():
        for node in index.readers(old):
            node.input[:] = [new if value == old else value for value in node.input]
        index.constants[old].name = new
    return bool(renamed)
