"""Forms of files: data movement without pairs, partly quantized files, subgraphs, functions, names, outputs."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.corpus.builder import MS, Builder, finished, given, network, parameters, scales, stored
from tests.support.onnx_maker import OnnxMaker, Value


def _stored_movement(dtype: str, host: bool = False) -> Builder:
    """Slice, Concat, MaxPool and Transpose of quantized values, as tf2onnx writes them; with `host`, between Exps."""

    def build(m: OnnxMaker) -> onnx.ModelProto:
        m.dtype = dtype
        kind = np.uint8 if dtype == "uint8" else np.int8
        names = parameters(m, 0.05, 3, kind)
        x = m.conv(m.image(3, 8, 8), 8)
        (q,) = m.node("QuantizeLinear", [x.name, *names])
        if host:
            (value,) = m.node("Exp", [m.node("DequantizeLinear", [q, *names])[0]])
            (other,) = m.node("QuantizeLinear", [value, *names])
        else:
            starts = [m.constant(np.array([v])) for v in (0, 4, 1)]
            (other,) = m.node("Slice", [q, *starts])
        (joined,) = m.node("Concat", [q, other, q], axis=1)
        (pooled,) = m.node("MaxPool", [joined], kernel_shape=[2, 2], strides=[2, 2])
        (value,) = m.node("DequantizeLinear", [pooled, *names])
        return finished(m, m.conv(Value(value, (1, 24 if host else 20, 4, 4), 0.05), 4))

    return build


def _conv_only(m: OnnxMaker) -> onnx.ModelProto:
    """Only convolutions have pairs, before them; what lies between is float."""
    value, channels = given(m, "x", (1, 3, 8, 8)), 3
    for scale in (1 / 64, 0.02, 0.03):
        image = m.pair(value, (1, channels, 8, 8), scale)
        weight, found = m.weights((8, channels, 3, 3), 0)
        (value,) = m.node("Conv", [image.name, weight, m.bias(found, scale)], pads=[1] * 4)
        (value,) = m.node("Relu", [value])
        channels = 8
    m.outputs.append(value)
    return m.opened()


def _conv_only_qoperator(m: OnnxMaker) -> onnx.ModelProto:
    """QLinearConv nodes with float activation functions between them."""
    value, channels = given(m, "x", (1, 3, 8, 8)), 3
    for scale in (1 / 64, 0.02):
        x, out = parameters(m, scale, 9), parameters(m, 0.2, 120)
        (q,) = m.node("QuantizeLinear", [value, *x])
        w = [stored(m, (8, channels, 3, 3)), scales(m, 8), m.constant(np.zeros(8, np.int8))]
        (q,) = m.node("QLinearConv", [q, *x, *w, *out], pads=[1] * 4)
        (value,) = m.node("DequantizeLinear", [q, *out])
        (gate,) = m.node("Sigmoid", [value])
        (value,) = m.node("Mul", [value, gate])
        channels = 8
    m.outputs.append(value)
    return m.opened()


def _alternating(m: OnnxMaker) -> onnx.ModelProto:
    """Regions with host operators between them."""
    x = m.conv(m.image(3, 10, 10), 16)
    for op in ("Exp", "Sin"):
        x = m.conv(m.pair(m.node(op, [x.name])[0], x.shape, 0.05), 16)
    return finished(m, x)


def _if(condition: str) -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        x = m.conv(m.image(3, 6, 6), 8)
        if condition == "constant":
            chosen = m.constant(np.array(True))
        elif condition == "size":
            (rank,) = m.node("Size", m.node("Shape", [x.name]))
            (chosen,) = m.node("Equal", [rank, m.constant(np.array(4))])
        else:
            (total,) = m.node("ReduceMax", ["image1"], keepdims=0)
            (chosen,) = m.node("Greater", [total, m.constant(np.float32(0.5))])

        def branch(op: str) -> onnx.GraphProto:
            made = [onnx.ValueInfoProto(name=f"{op}_result")]
            return helper.make_graph([helper.make_node(op, [x.name], [made[0].name])], op, [], made)

        (value,) = m.node("If", [chosen], then_branch=branch("Relu"), else_branch=branch("Neg"))
        return finished(m, m.conv(m.pair(value, x.shape, x.scale), 4))

    return build


def _functions(nested: bool) -> Builder:
    """SiLU as a function of the model."""

    def build(m: OnnxMaker) -> onnx.ModelProto:
        opset, local = helper.make_opsetid("", m.opset), helper.make_opsetid("local", 1)
        gate = [helper.make_node("Sigmoid", ["v"], ["g"]), helper.make_node("Mul", ["v", "g"], ["r"])]
        silu = helper.make_function("local", "SiLU", ["v"], ["r"], gate, [opset])
        outer = helper.make_function(
            "local", "Act", ["v"], ["r"], [helper.make_node("SiLU", ["v"], ["r"], domain="local")], [opset, local]
        )
        x = m.conv(m.image(3, 6, 6), 8)
        (value,) = m.node("Act" if nested else "SiLU", [x.name], domain="local")
        m.output(m.conv(m.pair(value, x.shape, x.scale), 4))
        return m.opened((silu, outer) if nested else (silu,))

    return build


def _outputs(kind: str) -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        x = network(m)
        m.output(x)
        if kind == "input":
            m.outputs.append(m.inputs[0].name)
        elif kind == "constant":
            m.outputs.append(m.constant(np.array([1.0, 2.0], np.float32)))
        elif kind == "stored":
            m.outputs.append(next(n for n in m.nodes if n.op_type == "DequantizeLinear").input[0])
        elif kind == "every":
            m.outputs += [n.output[0] for n in m.nodes if n.op_type in ("Conv", "Add", "Relu", "Concat")]
        model = m.opened()
        for value in model.graph.output[1:]:
            value.ClearField("type")
        return model

    return build


def _names(m: OnnxMaker) -> onnx.ModelProto:
    """Node names that occur twice, and values named by numbers."""
    model = finished(m, network(m))
    new = {name: str(i) for i, name in enumerate(o for n in model.graph.node for o in n.output)}
    for node in model.graph.node:
        node.name = "node"
        for names in (node.input, node.output):
            names[:] = [new.get(v, v) for v in names]
    model.graph.output[0].name = new[model.graph.output[0].name]
    return model


def _value_twice(m: OnnxMaker) -> onnx.ModelProto:
    model = finished(m, network(m))
    model.graph.node[-1].output[0] = model.graph.node[0].output[0]
    return model


def _empty(where: str) -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        if where == "input":
            given(m, "empty", (1, 0, 4, 4))
            m.outputs.append("empty")
            return finished(m, network(m))
        x = m.conv(m.image(3, 6, 6), 8)
        sizes = m.constant(np.array([0, 8]))
        nothing, rest = m.node("Split", [x.name, sizes], ["nothing", "rest"], axis=1)
        (joined,) = m.node("Concat", [nothing, rest], axis=1)
        return finished(m, m.conv(m.pair(joined, x.shape, x.scale), 4))

    return build


def _open(*dims: object) -> Builder:
    def build(m: OnnxMaker) -> onnx.ModelProto:
        model = finished(m, network(m))
        shape = model.graph.input[0].type.tensor_type.shape
        shape.CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, dims).type.tensor_type.shape)
        return model

    return build


def _custom_float(m: OnnxMaker) -> onnx.ModelProto:
    """A contributed operator on the host."""
    x = m.conv(m.image(3, 6, 6), 8)
    (value,) = m.node("Gelu", [x.name], **MS)
    m.outputs.append(value)
    return m.opened()


MODELS: dict[str, Builder] = {
    "stored movement": _stored_movement("uint8"),
    "stored movement, int8": _stored_movement("int8"),
    "stored movement with a host operator": _stored_movement("uint8", host=True),
    "stored movement with a host operator, int8": _stored_movement("int8", host=True),
    "Conv-only QDQ": _conv_only,
    "Conv-only QOperator": _conv_only_qoperator,
    "alternating regions": _alternating,
    "If, constant": _if("constant"),
    "If, size": _if("size"),
    "If, computed": _if("computed"),
    "function": _functions(nested=False),
    "nested functions": _functions(nested=True),
    "output is an input": _outputs("input"),
    "output is a constant": _outputs("constant"),
    "output is a stored value": _outputs("stored"),
    "every value is an output": _outputs("every"),
    "node names twice": _names,
    "value name twice": _value_twice,
    "empty input": _empty("input"),
    "empty part": _empty("part"),
    "open batch": _open("batch", 3, 8, 8),
    "open height": _open(1, 3, "height", 8),
    "contributed host operator": _custom_float,
}
