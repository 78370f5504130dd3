"""Damages model files: raw bytes, and the structure that they hold."""

import random
from collections.abc import Callable

import onnx
from onnx import TensorProto, helper

_ABSURD = (0, -1, 1, 3, 7, 1 << 20, -(1 << 40), (1 << 62))


def _flip(rng: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def _truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def _splice(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[:a] + data[b:] if rng.random() < 0.5 else data[:b] + data[a:]


def _drop_constant(rng: random.Random, graph: onnx.GraphProto) -> None:
    del graph.initializer[rng.randrange(len(graph.initializer))]


def _drop_node(rng: random.Random, graph: onnx.GraphProto) -> None:
    del graph.node[rng.randrange(len(graph.node))]


def _rewire(rng: random.Random, graph: onnx.GraphProto) -> None:
    node = rng.choice(graph.node)
    names = [o for n in graph.node for o in n.output] + [t.name for t in graph.initializer] + ["", "nothing"]
    if node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(names)


def _rename_output(rng: random.Random, graph: onnx.GraphProto) -> None:
    node = rng.choice(graph.node)
    node.output[0] = rng.choice([o for n in graph.node for o in n.output])


def _shuffle(rng: random.Random, graph: onnx.GraphProto) -> None:
    a, b = (rng.randrange(len(graph.node)) for _ in range(2))
    one, two = onnx.NodeProto(), onnx.NodeProto()
    one.CopyFrom(graph.node[a])
    two.CopyFrom(graph.node[b])
    graph.node[a].CopyFrom(two)
    graph.node[b].CopyFrom(one)


def _operator(rng: random.Random, graph: onnx.GraphProto) -> None:
    rng.choice(graph.node).op_type = rng.choice(
        [
            "Conv",
            "Gemm",
            "MatMul",
            "Concat",
            "Split",
            "Resize",
            "MaxPool",
            "Add",
            "Relu",
            "If",
            "Reshape",
            "Transpose",
            "Nonsense",
        ]
    )


def _shape(rng: random.Random, graph: onnx.GraphProto) -> None:
    dims = rng.choice(graph.input).type.tensor_type.shape.dim
    dims[rng.randrange(len(dims))].dim_value = rng.choice(_ABSURD)


def _constant_shape(rng: random.Random, graph: onnx.GraphProto) -> None:
    tensor = rng.choice(graph.initializer)
    if tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(_ABSURD)
    else:
        tensor.dims.append(rng.choice(_ABSURD))


def _constant_type(rng: random.Random, graph: onnx.GraphProto) -> None:
    rng.choice(graph.initializer).data_type = rng.randrange(30)


def _constant_value(rng: random.Random, graph: onnx.GraphProto) -> None:
    tensor = rng.choice(graph.initializer)
    tensor.raw_data = bytes(rng.choice([0, 127, 128, 255]) for _ in tensor.raw_data)


def _attribute(rng: random.Random, graph: onnx.GraphProto) -> None:
    node = rng.choice([n for n in graph.node if n.attribute])
    attribute = rng.choice(node.attribute)
    if attribute.ints:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(_ABSURD)
    elif rng.random() < 0.3:
        attribute.CopyFrom(helper.make_attribute(attribute.name, rng.choice(["text", 1.5, [1, 2, 3, 4, 5], 2])))
    else:
        attribute.i = rng.choice(_ABSURD)


def _output_type(rng: random.Random, graph: onnx.GraphProto) -> None:
    rng.choice(graph.output).type.tensor_type.elem_type = rng.choice([TensorProto.INT64, TensorProto.STRING, 0, 99])


_BYTES: tuple[Callable[[random.Random, bytes], bytes], ...] = (_flip, _flip, _truncate, _splice)
_STRUCTURE: tuple[Callable[[random.Random, onnx.GraphProto], None], ...] = (
    _drop_constant, _drop_node, _rewire, _rename_output, _shuffle, _operator, _shape, _constant_shape, _constant_type,
    _constant_value, _attribute, _attribute, _output_type,
)  # fmt: skip


def mutate(rng: random.Random, data: bytes) -> bytes:
    """One damaged copy of a serialized model."""
    if rng.random() < 0.4:
        return rng.choice(_BYTES)(rng, data)
    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        rng.choice(_STRUCTURE)(rng, model.graph)
    return model.SerializeToString()
