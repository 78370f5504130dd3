"""Running graphs: inputs are checked, and moves move."""

import numpy as np
import pytest

from intloom.common.errors import UnsupportedError, UsageError
from intloom.compiler.ir import Concat, Custom, IntGraph, Node, Resize, Slice, Table, Tensor
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.golden import run_graph


def tensor(name: str, *shape: int) -> Tensor:
    return Tensor(name, (1, *shape), 1.0, 0, False)


def graph_of(*nodes: Node, tensors: list[Tensor], outputs: tuple[str, ...]) -> IntGraph:
    return IntGraph("g", {t.name: t for t in tensors}, nodes, ("x",), outputs)


MOVES = graph_of(
    Slice(name="s", inputs=("x",), output="a", start=1, stop=3),
    Resize(name="r", inputs=("a",), output="b", factors=(2, 3)),
    Table(name="t", inputs=("b",), output="c", table=bytes(range(255, -1, -1))),
    Concat(name="c", inputs=("b", "c"), output="d"),
    tensors=[
        tensor("x", 4, 2, 2),
        tensor("a", 2, 2, 2),
        tensor("b", 2, 4, 6),
        tensor("c", 2, 4, 6),
        tensor("d", 4, 4, 6),
    ],
    outputs=("d",),
)


def test_moves_and_tables() -> None:
    x = np.arange(-8, 8, dtype=np.int8).reshape(1, 4, 2, 2)
    everything = run_graph(MOVES, {"x": x}, match=RoundingMode.ORT, keep=True)
    bigger = np.kron(x[:, 1:3], np.ones((1, 1, 2, 3), np.int8))
    np.testing.assert_array_equal(everything["b"], bigger)
    np.testing.assert_array_equal(everything["d"], np.concatenate([bigger, ~bigger], axis=1))
    assert set(run_graph(MOVES, {"x": x}, match=RoundingMode.ORT)) == {"d"}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "inputs must be ['x']"),
        ({"x": np.zeros((1, 4, 2, 3), np.int8)}, "must be int8 of shape (1, 4, 2, 2)"),
        ({"x": np.zeros((1, 4, 2, 2), np.uint8)}, "must be int8"),
    ],
)
def test_wrong_inputs_are_refused(inputs: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(UsageError) as error:
        run_graph(MOVES, inputs, match=RoundingMode.ORT)
    assert message in str(error.value)


def test_an_unknown_custom_operation_is_refused_by_name() -> None:
    node = Custom(name="mine", inputs=("x",), output="y", domain="acme", op="Nothing")
    graph = graph_of(node, tensors=[tensor("x", 1, 1, 1), tensor("y", 1, 1, 1)], outputs=("y",))
    with pytest.raises(UnsupportedError, match="'mine': acme::Nothing is not registered"):
        run_graph(graph, {"x": np.zeros((1, 1, 1, 1), np.int8)}, match=RoundingMode.ORT)
