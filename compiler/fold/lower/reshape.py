"""Reshape, Flatten, Squeeze, Unsqueeze, Transpose: another view of the same bytes where they keep their order."""

from __future__ import annotations

from intloom.compiler.fold.bytewise import requant_table
from intloom.compiler.fold.lowering import Lowering, Operand, Refusal, Verdict, lowers, unit_name
from intloom.compiler.fold.units import Unit
from intloom.compiler.ir import Tensor


@lowers("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Dropout")
def lower_view(low: Lowering, unit: Unit) -> None:
    """No work at all: the values, in row-major order, stay where they are."""
    main = unit.main
    assert main is not None
    leaf = main.input(0)
    x = low.operand(leaf)
    if main.op == "Transpose":
        _check_transpose(x, main.integers("perm", tuple(reversed(range(len(x.shape))))))
    shape = low.model.shape(unit.output)
    if shape is None:
        raise Refusal(f"the shape of {unit.output!r} is not known", "export the model with fixed sizes")
    if shape[0] != 1:
        raise Refusal(f"it makes a batch of {shape[0]}", "keep the batch at 1")
    table = requant_table(low, leaf, unit)
    if table is None:
        low.bind(unit.output, x.tensor.name)
        low.judge(unit, Verdict.PLACEMENT, "another view of the same bytes")
        return
    plain = low.tensor(unit.output, x.tensor.shape, low.params(unit))
    result = Tensor(plain.name, x.tensor.shape, plain.scale, plain.zero_point, plain.unsigned)
    low.finish(unit, low.table_node(unit_name(unit), x.tensor.name, table, result.name), result, Verdict.TABLE)


def _check_transpose(x: Operand, order: tuple[int, ...]) -> None:
    """A transposition keeps the order of bytes if it moves only axes of size one."""
    if [a for a in order if x.shape[a] > 1] != sorted(a for a in order if x.shape[a] > 1):
        raise Refusal("it changes the order of values", "transpose on the host, behind the last quantised operator")
