"""Changes the structure of valid quantized models: eleven kinds of changes, each from unusual to invalid."""

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.random_model import random_model

_AXES = (-5, -4, -1, 0, 1, 2, 3, 4)
_SIZES = (-1, 0, 1, 2, 3, 7, 64)
_KINDS = (
    TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32, TensorProto.FLOAT,
    TensorProto.INT4, TensorProto.FLOAT8E4M3FN,
)  # fmt: skip
_SCALES = (0.0, -0.1, 1e-30, 1e30, float("nan"), float("inf"), 1.0, 0.25, 0.01)
_ADDED = (
    "axis", "axes", "perm", "group", "pads", "ceil_mode", "auto_pad", "keepdims", "block_size", "dilations",
    "output_dtype", "to", "alpha", "channels_last", "saturate", "storage_order",
)  # fmt: skip
_UNARY = ("Sin", "Exp", "Sqrt", "Relu", "Identity", "Neg", "Softmax", "Floor", "Erf", "Tanh", "Abs", "Sign")


def _values(graph: onnx.GraphProto) -> list[str]:
    """Names of all values: inputs, constants and results."""
    return [
        *(v.name for v in graph.input),
        *(t.name for t in graph.initializer),
        *(o for n in graph.node for o in n.output if o),
    ]


def _fresh(graph: onnx.GraphProto, base: str) -> str:
    taken, count = set(_values(graph)), 0
    while f"{base}_{count}" in taken:
        count += 1
    return f"{base}_{count}"


def _constant(graph: onnx.GraphProto, array: np.ndarray, base: str = "added") -> str:
    name = _fresh(graph, base)
    graph.initializer.append(numpy_helper.from_array(array, name))
    return name


def _replace_readers(graph: onnx.GraphProto, old: str, new: str, first: int = 0) -> None:
    """Let the nodes from `first` on read `new` instead of `old`."""
    for node in list(graph.node)[first:]:
        for position, name in enumerate(node.input):
            if name == old:
                node.input[position] = new


def _rewire(rng: random.Random, model: onnx.ModelProto) -> None:
    """An input of a node becomes another value, mostly one that exists before the node."""
    graph = model.graph
    index = rng.randrange(len(graph.node))
    before = [o for n in graph.node[:index] for o in n.output] + [v.name for v in graph.input]
    names = before if rng.random() < 0.7 else [*_values(graph), "", "nothing"]
    node = graph.node[index]
    position = rng.randrange(len(node.input)) if rng.random() < 0.4 else 0
    if names and node.input:
        node.input[position] = rng.choice(names)


def _outputs(rng: random.Random, model: onnx.ModelProto) -> None:
    """An output is an intermediate value, an input, a constant, or occurs twice; or outputs change order."""
    graph = model.graph
    kind = rng.randrange(5)
    if kind == 0:
        graph.output.append(onnx.ValueInfoProto(name=rng.choice([v.name for v in graph.input])))
    elif kind == 1:
        graph.output.append(onnx.ValueInfoProto(name=rng.choice([t.name for t in graph.initializer])))
    elif kind == 2:
        for _ in range(rng.randint(1, 3)):
            graph.output.append(onnx.ValueInfoProto(name=rng.choice([o for n in graph.node for o in n.output])))
    elif kind == 3:
        graph.output.append(rng.choice(graph.output))
    else:
        kept = rng.sample(list(graph.output), rng.randint(0, len(graph.output)))
        del graph.output[:]
        graph.output.extend(kept)


def _names(rng: random.Random, model: onnx.ModelProto) -> None:
    """Names that occur twice, are empty or unusual, or belong to two kinds of objects."""
    graph, kind = model.graph, rng.randrange(6)
    if kind == 0:
        for node in graph.node:
            node.name = rng.choice(["", "same", node.name])
    elif kind == 1:
        rng.choice(graph.node).output[0] = rng.choice(_values(graph))
    elif kind == 2:
        new = rng.choice(["1", "10", "a/b:0", "a b", "ä", "x" * 300, "Q", "/float", "%s{0}", "..", "nul\x00l", "'"])
        old = rng.choice([o for n in graph.node for o in n.output] + [v.name for v in graph.input])
        _rename(graph, old, new)
    elif kind == 3:
        graph.initializer.append(rng.choice(graph.initializer))
    elif kind == 4:
        graph.input.append(rng.choice(graph.input))
    else:
        # A node has the name of a value, which passes that derive names could confuse.
        names = [f"{v}{suffix}" for v in _values(graph) for suffix in ("", "/float", "/stored", "/Q", "/DQ", "/again")]
        rng.choice(graph.node).name = rng.choice(names)
        _rename(graph, rng.choice([o for n in graph.node for o in n.output]), rng.choice(names))


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            for position, name in enumerate(names):
                if name == old:
                    names[position] = new
    for value in (*graph.input, *graph.output):
        if value.name == old:
            value.name = new
    for value in list(graph.value_info):
        if value.name in (old, new):
            graph.value_info.remove(value)


def _empty(rng: random.Random, model: onnx.ModelProto) -> None:
    """Dimensions of size zero: in an input, in weights, or made by a Slice, Split or Reshape."""
    graph, kind = model.graph, rng.randrange(4)
    if kind == 0:
        dims = rng.choice(graph.input).type.tensor_type.shape.dim
        dims[rng.randrange(len(dims))].dim_value = 0
        del graph.value_info[:]
        return
    if kind == 1:
        tensor = rng.choice(graph.initializer)
        array = numpy_helper.to_array(tensor)
        if array.ndim:
            tensor.CopyFrom(numpy_helper.from_array(np.take(array, [], axis=rng.randrange(array.ndim)), tensor.name))
        return
    value = rng.choice([o for n in graph.node for o in n.output])
    index = next(i for i, n in enumerate(graph.node) if value in n.output)
    made = _fresh(graph, "nothing")
    if kind == 2:
        inputs = [_constant(graph, np.array([v], np.int64)) for v in (0, 0, rng.randrange(4))]
        node = helper.make_node("Slice", [value, *inputs], [made], name=made)
    else:
        inputs = [_constant(graph, np.array([0, rng.choice([1, 3, 8])], np.int64))]
        node = helper.make_node("Split", [value, *inputs], [made, f"{made}_rest"], name=made, axis=rng.randrange(4))
    graph.node.insert(index + 1, node)
    if rng.random() < 0.5:
        _replace_readers(graph, value, node.output[-1], index + 2)
    else:
        graph.output.append(onnx.ValueInfoProto(name=made))


def _branches(rng: random.Random, model: onnx.ModelProto) -> None:
    """An If whose branches read outer values; its condition is constant or computed."""
    graph = model.graph
    producing = [(i, n) for i, n in enumerate(graph.node) if len(n.output) == 1]
    index, node = rng.choice(producing)
    value, made = node.output[0], _fresh(graph, "chosen")
    others = [o for n in graph.node[:index] for o in n.output] or [value]

    def branch(name: str) -> onnx.GraphProto:
        source = value if rng.random() < 0.7 else rng.choice(others)
        op = rng.choice(["Identity", "Relu", "Neg"])
        result = f"{made}_{name}" if rng.random() < 0.8 else value
        nodes = [helper.make_node(op, [source], [result], name=rng.choice(["", node.name, f"{name}_node"]))]
        return helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=result)])

    if rng.random() < 0.6:
        condition = _constant(graph, np.array(rng.random() < 0.5))
        extra = []
    else:
        condition = f"{made}_condition"
        total = helper.make_node("ReduceMax", [graph.input[0].name], [f"{made}_max"], name=f"{made}_max", keepdims=0)
        limit = _constant(graph, np.array(0.5, np.float32))
        extra = [total, helper.make_node("Greater", [f"{made}_max", limit], [condition], name=condition)]
    branches = {"then_branch": branch("then"), "else_branch": branch("else")}
    whole = helper.make_node("If", [condition], [made], name=made, **branches)
    for offset, one in enumerate([*extra, whole]):
        graph.node.insert(index + 1 + offset, one)
    _replace_readers(graph, value, made, index + 2 + len(extra))
    if rng.random() < 0.3:
        graph.output.append(onnx.ValueInfoProto(name=made))


def _functions(rng: random.Random, model: onnx.ModelProto) -> None:
    """Some consecutive nodes become a function of the model, called once or for every equal operator."""
    graph = model.graph
    start = rng.randrange(len(graph.node))
    body = [onnx.NodeProto.FromString(n.SerializeToString()) for n in graph.node[start : start + rng.randint(1, 3)]]
    made = [o for n in body for o in n.output]
    inputs = list(dict.fromkeys(v for n in body for v in n.input if v and v not in made))
    later = {v for n in graph.node[start + len(body) :] for v in n.input} | {o.name for o in graph.output}
    outputs = [o for o in made if o in later] or made[-1:]
    domain = rng.choice(["local", "local.more", "com.microsoft", ""])
    name = rng.choice(["Block", body[0].op_type])
    opsets = [o for o in model.opset_import if o.domain != domain] if rng.random() < 0.9 else []
    imports = [*opsets, helper.make_opsetid(domain, 1)] if domain else opsets
    model.functions.append(helper.make_function(domain, name, inputs, outputs, body, imports))
    call = helper.make_node(name, inputs, outputs, name=_fresh(graph, "call"), domain=domain)
    for node in list(graph.node[start : start + len(body)]):
        graph.node.remove(node)
    graph.node.insert(start, call)
    if domain and rng.random() < 0.9:
        model.opset_import.append(helper.make_opsetid(domain, 1))
    del graph.value_info[:]


def _attributes(rng: random.Random, model: onnx.ModelProto) -> None:
    """An attribute has another value, or is added or removed."""
    node = rng.choice(model.graph.node)
    kind = rng.randrange(4)
    given = list(node.attribute)
    if kind == 0 and given:
        node.attribute.remove(rng.choice(given))
    elif kind == 1 or not given:
        name = rng.choice(_ADDED)
        several = [rng.choice(_AXES) for _ in range(rng.choice([0, 2, 4]))]
        value = rng.choice([rng.choice(_AXES), several, 0.5, "SAME_UPPER"])
        if not any(a.name == name for a in node.attribute) and value != []:
            node.attribute.append(helper.make_attribute(name, value))
    else:
        attribute = rng.choice(given)
        if attribute.ints and rng.random() < 0.8:
            attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(_SIZES)
        elif attribute.type == onnx.AttributeProto.INT:
            attribute.i = rng.choice((*_AXES, *_SIZES))
        elif attribute.type == onnx.AttributeProto.FLOAT:
            attribute.f = rng.choice(_SCALES)
        elif attribute.ints:
            del attribute.ints[-1]


def _parameters(rng: random.Random, model: onnx.ModelProto) -> None:
    """A scale or zero point of another shape, type or value, missing, or computed."""
    graph = model.graph
    pairs = [n for n in graph.node if n.op_type in ("QuantizeLinear", "DequantizeLinear") or "QLinear" in n.op_type]
    if not pairs:
        return
    node = rng.choice(pairs)
    position = rng.randrange(1, len(node.input))
    stored = {t.name: t for t in graph.initializer}
    tensor = stored.get(node.input[position])
    kind = rng.randrange(6)
    if tensor is None:
        return
    array = numpy_helper.to_array(tensor)
    if kind == 0:
        shape = rng.choice([(), (1,), (2,), (0,), (1, 1), (1, 1, 1, 1), (8,), (3, 1)])
        made = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
        node.input[position] = _constant(graph, made.astype(array.dtype))
    elif kind == 1:
        name = _fresh(graph, "typed")
        graph.initializer.append(helper.make_tensor(name, rng.choice(_KINDS), array.shape, [1] * array.size))
        node.input[position] = name
    elif kind == 2 and array.dtype == np.float32:
        made = array.copy()
        made.reshape(-1)[: max(1, made.size // 2)] = rng.choice(_SCALES)
        node.input[position] = _constant(graph, made)
    elif kind == 3 and len(node.input) == 3:
        del node.input[2]
    elif kind == 4:
        made = _fresh(graph, "computed")
        graph.node.insert(0, helper.make_node("Identity", [node.input[position]], [made], name=made))
        node.input[position] = made
    else:
        low, high = (0, 255) if array.dtype == np.uint8 else (-128, 127)
        if array.dtype in (np.uint8, np.int8):
            node.input[position] = _constant(graph, np.full(array.shape, rng.choice([low, high, 3]), array.dtype))


def _opsets(rng: random.Random, model: onnx.ModelProto) -> None:
    """Another opset or IR version, a second import, or none."""
    kind = rng.randrange(4)
    if kind == 0:
        model.opset_import[0].version = rng.choice([0, 6, 9, 10, 12, 13, 18, 19, 21, 23, 25, 26, 99])
    elif kind == 1:
        model.ir_version = rng.choice([0, 3, 4, 7, 9, 10, 11, 12, 13, 99])
    elif kind == 2:
        domain = rng.choice(["", "ai.onnx", "ai.onnx.ml", "acme", "com.microsoft"])
        model.opset_import.append(helper.make_opsetid(domain, rng.choice([1, 2, 13, 17, 21])))
    else:
        node = rng.choice(model.graph.node)
        node.domain = rng.choice(["ai.onnx", "com.microsoft", "acme"])
        if rng.random() < 0.7:
            model.opset_import.append(helper.make_opsetid(node.domain, 1))


def _nodes(rng: random.Random, model: onnx.ModelProto) -> None:
    """A node is removed (its readers read its input), repeated, or moved."""
    graph, kind = model.graph, rng.randrange(4)
    index = rng.randrange(len(graph.node))
    node = graph.node[index]
    if kind == 0:
        old, new = node.output[0], node.input[0]
        graph.node.remove(node)
        _replace_readers(graph, old, new)
        for value in graph.output:
            value.name = new if value.name == old else value.name
        del graph.value_info[:]
    elif kind == 1:
        copy = onnx.NodeProto.FromString(node.SerializeToString())
        for position, name in enumerate(copy.output):
            copy.output[position] = f"{name}_copy"
        graph.node.insert(index + 1, copy)
        _replace_readers(graph, node.output[0], copy.output[0], rng.randrange(index + 1, len(graph.node)))
    elif kind == 2:
        graph.node.remove(node)
    else:
        copy = onnx.NodeProto.FromString(node.SerializeToString())
        graph.node.remove(node)
        graph.node.insert(rng.randrange(len(graph.node) + 1), copy)


def _between(rng: random.Random, model: onnx.ModelProto) -> None:
    """Operators that only the host has, in the middle: on float values, or on quantized values."""
    graph = model.graph
    for _ in range(rng.randint(1, 3)):
        index = rng.randrange(len(graph.node))
        value = graph.node[index].output[0]
        made = _fresh(graph, "between")
        stored = graph.node[index].op_type == "QuantizeLinear"
        if stored and rng.random() < 0.5:
            nodes = [
                helper.make_node("Transpose", [value], [made], name=made, perm=rng.choice([[0, 1, 3, 2], [0, 1, 2, 3]]))
            ]
        elif stored:
            nodes = [
                helper.make_node("Cast", [value], [f"{made}_wide"], name=f"{made}_wide", to=TensorProto.INT32),
                helper.make_node("Cast", [f"{made}_wide"], [made], name=made, to=TensorProto.UINT8),
            ]
        else:
            nodes = [helper.make_node(rng.choice(_UNARY), [value], [made], name=made)]
        for offset, node in enumerate(nodes):
            graph.node.insert(index + 1 + offset, node)
        _replace_readers(graph, value, made, index + 1 + len(nodes))
    del graph.value_info[:]


CHANGES: dict[str, Callable[[random.Random, onnx.ModelProto], None]] = {
    "rewired inputs": _rewire,
    "outputs": _outputs,
    "names": _names,
    "empty tensors": _empty,
    "branches": _branches,
    "functions": _functions,
    "attributes": _attributes,
    "parameters": _parameters,
    "opsets": _opsets,
    "nodes": _nodes,
    "host operators": _between,
}
"""The kinds of changes."""


def change(kind: str, seed: int) -> onnx.ModelProto:
    """The mutant of a seed: a random model with one to three changes of a kind."""
    rng = random.Random(f"{kind} {seed}")
    model = onnx.ModelProto.FromString(
        random_model(rng.randrange(1 << 20), rng.choice(["uint8", "int8"])).SerializeToString()
    )
    for _ in range(rng.choice([1, 1, 2, 3])):
        if len(model.graph.node) and len(model.graph.output):
            CHANGES[kind](rng, model)
    return model
