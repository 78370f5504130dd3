"""ONNX shape inference that does not trust the shapes of inner values in the file."""

import onnx

from intloom.compiler.importer.contributed import infer_with_contributed
from intloom.compiler.importer.model import MICROSOFT


def infer_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Infer the shapes of all values; shapes in the file serve only where inference finds none.

    Exporters and tools leave wrong shapes of inner values in files. After an If, Loop or Scan a shape in the file may
    be that of one branch.
    """
    given = list(proto.graph.value_info)
    known = [n for n in proto.graph.node if n.domain in ("", "ai.onnx", MICROSOFT)]
    standard = {name for n in known for name in n.output}
    uncertain = _after_subgraphs(proto.graph)
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(v for v in given if v.name not in standard)
    inferred = infer_with_contributed(proto)
    static = {v.name for v in inferred.graph.value_info if _is_static(v)}
    missing = [v for v in given if v.name in standard and v.name not in static | uncertain and _is_static(v)]
    if missing:
        proto.graph.value_info.extend(missing)
        inferred = infer_with_contributed(proto)
    return inferred


def _after_subgraphs(graph: onnx.GraphProto) -> set[str]:
    """Values that depend on a node with a subgraph."""
    values: set[str] = set()
    for node in graph.node:
        if any(a.HasField("g") for a in node.attribute) or not values.isdisjoint(node.input):
            values.update(node.output)
    return values


def _is_static(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.tensor_type
    return kind.HasField("shape") and all(d.HasField("dim_value") for d in kind.shape.dim)
