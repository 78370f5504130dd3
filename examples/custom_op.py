"""A custom integer operation: its meaning in numpy, its lowering, and a model that uses it, down to the RTL.

Run with `python examples/custom_op.py` (`--no-rtl` leaves the RTL out). The operation, `acme::Fold`, gives the mean of
a value and its magnitude, which is the larger of it and its mirror image around the zero point. It says so in integers:
it stands between a QuantizeLinear and a DequantizeLinear, so it is handed stored integers and their scales.

Its lowering shows both ways to express something new in operations that the accelerator has: a function of one byte is
a table; anything else is a sequence of nodes, here a mean of two tensors by an affine law behind the table.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from intloom.compiler.custom import CustomOp, register, unregister
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.ir import Add, Custom, IntGraph, Node, Table, Tensor
from intloom.compiler.program.soundness import check_program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.arith import Affine, RoundingMode
from intloom.hw.spec.params import preset
from intloom.sim.backend import RtlBackend
from intloom.sim.golden import run_graph
from intloom.sim.isa_sim import IsaSimulator

Int8s = NDArray[np.int8]
SHAPE = (1, 2, 4, 4)


def mirror(values: Int8s, zero: int) -> Int8s:
    """`zero - (x - zero)`, clamped: integers only."""
    return np.clip(2 * zero - values.astype(np.int32), -128, 127).astype(np.int8)


def magnitude(values: Int8s, zero: int) -> Int8s:
    """The larger of a value and its mirror image."""
    return np.maximum(values, mirror(values, zero))


def meaning(
    operands: Sequence[Int8s], tensors: Sequence[Tensor], result: Tensor, attributes: Mapping[str, object]
) -> Int8s:
    """What the golden model computes: the mean of a value and its magnitude, halves rounded up."""
    (values,), zero = operands, tensors[0].zero_point
    return ((values.astype(np.int32) + magnitude(values, zero) + 1) >> 1).astype(np.int8)


def lower(node: Custom, operands: Sequence[Tensor], result: Tensor) -> Sequence[Node]:
    """The same as operations that the accelerator has: a table, then an affine sum of two tensors."""
    every = np.arange(256, dtype=np.uint8).view(np.int8)
    table = magnitude(every, operands[0].zero_point).tobytes()
    between = f"{node.output}.magnitude"
    mean = Affine(m1=1, m2=1, c=0, shift=1, even=False)
    return [
        Table(name=f"{node.name}.table", inputs=node.inputs, output=between, table=table),
        Add(name=node.name, inputs=(node.inputs[0], between), output=node.output, affine=mean),
    ]


def build_model() -> onnx.ModelProto:
    """`y = DQ(Fold(Q(x)))` with a scale of 0.1 and a zero point of 100."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["stored"], name="quantize"),
        helper.make_node("Fold", ["stored"], ["folded"], name="fold", domain="acme"),
        helper.make_node("DequantizeLinear", ["folded", "scale", "zero"], ["y"], name="dequantize"),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.float32(0.1), "scale"),
        onnx.numpy_helper.from_array(np.uint8(100), "zero"),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, SHAPE) for n in "xy")
    graph = helper.make_graph(nodes, "fold", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)])


def golden(operation: CustomOp, values: Int8s) -> tuple[IntGraph, Int8s]:
    """The folded model with the operation as registered, and what the golden model makes of it."""
    register(operation)
    try:
        graph = fold_model(from_proto(build_model(), name="fold")).graph
        (result,) = run_graph(graph, {graph.inputs[0]: values}, match=RoundingMode.ORT).values()
    finally:
        unregister(operation.domain, operation.op)
    print(f"graph: {', '.join(type(n).__name__ for n in graph.nodes)}")
    return graph, result


def main(arguments: Sequence[str]) -> None:
    """Fold the model with the operation, once by its meaning and once lowered; compile, run and compare everywhere."""
    values = np.random.default_rng(0).integers(-128, 128, SHAPE).astype(np.int8)
    _, expected = golden(CustomOp("acme", "Fold", meaning), values)
    graph, lowered = golden(CustomOp("acme", "Fold", meaning, lower=lower), values)
    results = {"lowering": lowered}
    program = compile_graph(graph, preset("nano"))
    check_program(program)
    inputs = {graph.inputs[0]: values}
    (results["instruction simulator"],) = IsaSimulator(program).run(inputs).values()
    if "--no-rtl" not in arguments:
        (results["RTL"],) = RtlBackend().run(program, inputs).outputs.values()
    for name, result in results.items():
        if not np.array_equal(result, expected):
            raise SystemExit(f"{name} and meaning differ")
        print(f"{name} and meaning give the same bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
