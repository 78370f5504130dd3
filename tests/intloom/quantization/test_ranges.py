"""Whose function decides the range of a tensor, and whose range a normalization decides."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from intloom.quantization.ranges import activation_function, best_ranges, relu, silu


def graph(*nodes: tuple[str, list[str], str]):
    shape = (1, 8, 16)
    made = [helper.make_node(op, inputs, [output]) for op, inputs, output in nodes]
    read = {i for _, inputs, _ in nodes for i in inputs}
    results = [output for *_, output in nodes if output not in read]
    info = helper.make_tensor_value_info
    return helper.make_model(
        helper.make_graph(
            made,
            "g",
            [info("x", TensorProto.FLOAT, shape)],
            [info(name, TensorProto.FLOAT, None) for name in results],
            [helper.make_tensor("w", TensorProto.FLOAT, (16, 16), np.eye(16, dtype=np.float32).ravel() * 3),
             helper.make_tensor("g", TensorProto.FLOAT, (16,), np.ones(16, np.float32))],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )  # fmt: skip


MATMUL, SIGMOID = ("MatMul", ["x", "w"], "t"), ("Sigmoid", ["t"], "s")


@pytest.mark.parametrize(
    ("readers", "function"),
    [
        ([("Relu", ["t"], "y")], relu),
        ([("Relu", ["t"], "y"), ("Neg", ["t"], "z")], None),
        ([SIGMOID, ("Mul", ["t", "s"], "y")], silu),
        ([SIGMOID, ("Mul", ["s", "t"], "y")], silu),
        ([SIGMOID, ("Mul", ["t", "x"], "y")], None),
        ([SIGMOID, ("Mul", ["t", "s"], "y"), ("Neg", ["t"], "z")], None),
        ([("Neg", ["t"], "z")], None),
    ],
)
def test_a_function_counts_where_it_alone_reads_the_tensor(readers, function):
    found = activation_function(graph(MATMUL, *readers), "t")
    if function is None:
        assert found(np.array([-2.5, 3.0])).tolist() == [-2.5, 3.0]
    else:
        assert found is function


@pytest.mark.parametrize("others", [[], [("Neg", ["t"], "z")]])
def test_the_range_of_a_term_follows_its_sum_only_if_nothing_else_reads_it(others):
    """A token with large values, as transformers have: cut off where a normalization reads the sum alone."""
    values = np.random.default_rng(0).normal(size=(1, 8, 16)).astype(np.float32)
    values[0, 0, 3] = 3000
    plain = graph(MATMUL, ("Neg", ["t"], "z"))
    model = graph(MATMUL, ("Add", ["t", "x"], "sum"), ("LayerNormalization", ["sum", "g"], "y"), *others)
    alone, found = (best_ranges(m, [{"x": values}])["t"] for m in (plain, model))
    assert (found == alone) == bool(others)
