"""The example of docs/adding-a-stage-kind.md: its only file, run as it stands there."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from intloom.compiler.ir import Mul, Tensor
from intloom.compiler.ir.node import Context
from intloom.compiler.ir.tensor import Image, Shape
from intloom.compiler.schedule.stages.stage_list import SCHEDULES
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker
from tests.support.golden import golden_program

GUIDE = Path(__file__).parents[3] / "docs" / "adding-a-stage-kind.md"
AFFINE = Affine(5000, 0, 1 << 10, 20)


class Square(Mul):
    """A product of a tensor with itself."""

    OPERANDS = 1

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        return operands[0].shape

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        return super().evaluate((operands[0], operands[0]), context)


@pytest.fixture
def stage_kind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The guide's file, as a module of its folder."""
    ((path, source),) = re.findall(r'^```python title="(.*?)"\n(.*?)^```$', GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    node = ModuleType("intloom.compiler.ir.ops.square")
    node.Square = Square  # type: ignore[attr-defined]  # a module that is made here
    monkeypatch.setitem(sys.modules, node.__name__, node)
    name = f"intloom.{path.removesuffix('.py').replace('/', '.')}"
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, path, "exec"), vars(module))
    yield
    del SCHEDULES[Square]


@pytest.mark.usefixtures("stage_kind")
@pytest.mark.parametrize("scratch_kib", [8, 256])
def test_the_example_computes_squares(scratch_kib: int) -> None:
    """Also where the tensor goes through DRAM in tiles, and in stripes with the convolutions around it."""
    params = preset("nano").replace(vector_multiply=True, scratch_kib=scratch_kib)
    maker = GraphMaker(1)
    x = maker.conv(maker.input(8, 40, 40), 16, 3)
    fields = {"affine": AFFINE, "zero_a": 3, "zero_b": -2}
    y = maker.node(Square, (x,), maker.shape(x), table=maker.table(), **fields)
    graph = maker.graph(maker.conv(y, 8, 3))
    program = golden_program(graph, maker.random_inputs(), params)
    products = [i for i in program.instructions if i.kind is Kind.VMUL]
    assert products
    assert all(i["a_base"] == i["b_base"] for i in products)
