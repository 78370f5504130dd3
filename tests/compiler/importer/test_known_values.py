"""Values that depend on constants and sizes are computed within limits of elements and memory."""

import tracemalloc

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from intloom.compiler.importer.known_values import KnownValues


def value(*nodes: onnx.NodeProto, **constants: list[int]) -> NDArray[np.generic] | None:
    """What is known of the result y, where an image x [1, 3, 8, 8] is an input."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    y = onnx.ValueInfoProto(name="y")
    stored = [numpy_helper.from_array(np.array(v, np.int64), name) for name, v in constants.items()]
    return KnownValues(helper.make_graph(nodes, "g", [x], [y], stored)).value("y")


SPREADING = {
    "ConstantOfShape": [helper.make_node("ConstantOfShape", ["size"], ["y"])],
    "Expand": [helper.make_node("Expand", ["one", "size"], ["y"])],
    "Tile": [helper.make_node("Tile", ["one", "size"], ["y"])],
}


@pytest.mark.parametrize("op", SPREADING)
@pytest.mark.parametrize("size", [4096, 4097, 10**7])
def test_no_value_has_more_elements_than_the_limit(op: str, size: int) -> None:
    value(*SPREADING[op], size=[2], one=[5])  # loads what evaluates
    tracemalloc.start()
    found = value(*SPREADING[op], size=[size], one=[5])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found is not None) == (size == 4096)
    assert found is None or found.shape == (size,)
    assert peak < 10_000_000


def test_sizes_of_an_input_are_known_and_its_values_are_not() -> None:
    shape = helper.make_node("Shape", ["x"], ["s"])
    found = value(shape, helper.make_node("Mul", ["s", "two"], ["y"]), two=[2])
    assert found is not None
    assert found.tolist() == [2, 6, 16, 16]
    assert value(shape, helper.make_node("Add", ["s", "x"], ["y"])) is None
