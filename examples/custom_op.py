"""A custom integer operator: its semantics in numpy, its lowering, and a model that uses it, on all backends.

Run `python examples/custom_op.py`; `--no-rtl` skips the RTL simulation. The operator `acme::Fold` computes the mean of
a value and its magnitude, which is the larger of the value and its mirror image around the zero point. It is placed
between a QuantizeLinear and a DequantizeLinear, so its operands are integers with known scales.

The lowering shows both ways to express an operator with existing operations: a function of one byte is a table; other
functions are a sequence of nodes, here a table followed by an affine sum of two tensors.
"""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from intloom import CustomOp, register_custom_op, unregister_custom_op
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
    """Semantics for the golden model: the mean of a value and its magnitude, halves rounded up."""
    (values,), zero = operands, tensors[0].zero_point
    return ((values.astype(np.int32) + magnitude(values, zero) + 1) >> 1).astype(np.int8)


def lower(node: Custom, operands: Sequence[Tensor], result: Tensor) -> Sequence[Node]:
    """The lowering: a table, then an affine sum of two tensors."""
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
    """The folded model with the operation as registered, and the result of the golden model."""
    register_custom_op(operation)
    try:
        graph = fold_model(from_proto(build_model(), name="fold")).graph
        (result,) = run_graph(graph, {graph.inputs[0]: values}, match=RoundingMode.ORT).values()
    finally:
        unregister_custom_op(operation.domain, operation.op)
    print(f"graph: {', '.join(type(n).__name__ for n in graph.nodes)}")
    return graph, result


def main(arguments: Sequence[str]) -> None:
    """Fold the model with and without the lowering; compile it, run it on all backends and compare the results."""
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
            raise SystemExit(f"{name} differs from the semantics in numpy")
        print(f"{name}: equal to the semantics in numpy")


if __name__ == "__main__":
    main(sys.argv[1:])
