"""A custom integer operation: its meaning in numpy, its lowering, and a model that uses it.

Run with `python examples/custom_op.py`. The operation, `acme::Invert`, mirrors every value around its zero point, and
says so in integers: it stands between a QuantizeLinear and a DequantizeLinear, so it is handed stored integers and
their scales.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from compiler.custom import CustomOp, register, unregister
from compiler.frontend import fold_model
from compiler.importer import from_proto
from compiler.ir import Custom, Node, Table, Tensor
from hw.spec.arith import Match
from sim.golden import run_graph

Int8s = NDArray[np.int8]


def mirror(values: Int8s, operand: Tensor, result: Tensor) -> Int8s:
    """`zero - (x - zero)`, clamped: integers only."""
    moved = result.zero_point - (values.astype(np.int32) - operand.zero_point)
    return np.clip(moved, -128, 127).astype(np.int8)


def meaning(
    operands: Sequence[Int8s], tensors: Sequence[Tensor], result: Tensor, attributes: Mapping[str, object]
) -> Int8s:
    """What the golden model computes."""
    return mirror(operands[0], tensors[0], result)


def lower(node: Custom, operands: Sequence[Tensor], result: Tensor) -> Sequence[Node]:
    """The same as an operation that the accelerator has: a function of one byte is a table."""
    every = np.arange(256, dtype=np.uint8).view(np.int8)
    table = mirror(every, operands[0], result).tobytes()
    return [Table(name=node.name, inputs=node.inputs, output=node.output, table=table)]


def build_model() -> onnx.ModelProto:
    """`y = DQ(Invert(Q(x)))` with a scale of 0.1 and a zero point of 100."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["stored"], name="quantize"),
        helper.make_node("Invert", ["stored"], ["inverted"], name="invert", domain="acme"),
        helper.make_node("DequantizeLinear", ["inverted", "scale", "zero"], ["y"], name="dequantize"),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.float32(0.1), "scale"),
        onnx.numpy_helper.from_array(np.uint8(100), "zero"),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, 2, 4, 4)) for n in "xy")
    graph = helper.make_graph(nodes, "mirror", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)])


def main() -> None:
    """Fold the model with the operation, once by its meaning and once lowered, and compare."""
    values = np.random.default_rng(0).integers(-128, 128, (1, 2, 4, 4)).astype(np.int8)
    results = []
    for domain_op in (CustomOp("acme", "Invert", meaning), CustomOp("acme", "Invert", meaning, lower=lower)):
        register(domain_op)
        graph = fold_model(from_proto(build_model(), name="mirror")).graph
        print(f"graph: {', '.join(type(n).__name__ for n in graph.nodes)}")
        (result,) = run_graph(graph, {graph.inputs[0]: values}, match=Match.ORT).values()
        results.append(result)
        unregister("acme", "Invert")
    assert np.array_equal(results[0], results[1])
    print("meaning and lowering give the same bytes")


if __name__ == "__main__":
    main()
