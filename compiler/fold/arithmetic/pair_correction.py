"""Correction of single pairs, for functions of two bytes that no affine constants reproduce.

onnxruntime adds in fp32, which rounds a few sums next to a tie to ties, and no integer constants reproduce all of
them. A few of the 65,536 pairs then differ by one. Two tables, one per operand, mark these pairs: their results add up
to a code that no other pair has. A table maps the code to a correction of +1 or -1:

    mark = T(mark_a(a) + mark_b(b)), result = affine(a, b) + mark
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.affine_fit import SUM
from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Add, Mul, Tensor
from intloom.compiler.refusals import Refusal

_MARK = 100
_MOST_PAIRS = 90
"""The pairs are numbered. The codes of pair n are n and `_MARK` - n, which both fit int8."""
_MOST_GROUPS = 4
Codes = tuple[NDArray[np.int8], NDArray[np.int8]]


class Missing(NamedTuple):
    """The required result less that of a node, indexed by the bytes of two operands, and their tensors."""

    pairs: NDArray[np.int64]
    operands: tuple[str, str]


def correct(builder: GraphBuilder, unit: QuantizationUnit, node: Add | Mul, result: Tensor, wrong: Missing) -> None:
    """Emit `node` and the correction of its wrong pairs; the caller has recorded in which order `result` is."""
    missing = wrong.pairs
    groups = marked_groups(missing)
    if groups is None:
        raise Refusal.NO_INTEGERS(
            f"no integer constants reproduce it: {np.count_nonzero(missing)} of 65,536 pairs are next to a tie, which "
            "onnxruntime's float arithmetic rounds irregularly",
            "change one of the three scales slightly (by recalibration), or use scales that are powers of two",
        )
    # The uncorrected result is an intermediate tensor of the same scale, so that the correction is a plain sum.
    node = replace(node, origin=unit.origins)
    rough = replace(node, output=f"{result.name}/rough")
    builder.emit(rough, replace(result, name=rough.output))
    so_far = rough.output
    # Each group adds one correction in sequence; a pair belongs to exactly one group.
    for number, codes in enumerate(groups):
        mark = _mark(builder, replace(node, inputs=wrong.operands), result, codes, str(number or ""))
        exact = result.name if number == len(groups) - 1 else f"{result.name}/exact{number}"
        last = Add(name=f"{node.name}/exact{number or ''}", inputs=(so_far, mark), output=exact, affine=SUM)
        builder.emit(replace(last, origin=unit.origins), replace(result, name=exact))
        so_far = exact
    note = f"proved over 65,536 pairs, {np.count_nonzero(missing)} of them corrected by tables"
    builder.assign(unit, Target.VECTOR, note)


def _mark(builder: GraphBuilder, node: Add | Mul, result: Tensor, codes: Codes, number: str) -> str:
    """Emit nodes that are 1 or -1 at the pairs that `codes` mark, and 0 elsewhere; return the result's name."""
    marks = []
    for side, source, code in zip("ab", node.inputs, codes, strict=True):
        name = f"{result.name}/mark{number}_{side}"
        table = builder.table_node(f"{node.name}/mark{number}_{side}", source, code, name)
        builder.emit(replace(table, origin=node.origin), _plain(name, builder.tensors[source]))
        marks.append(name)
    seen = np.zeros(256, dtype=np.int8)
    # Vector tables are indexed by `value & 0xFF`, so negative codes come after the positive ones.
    seen[_MARK], seen[-_MARK & 0xFF] = 1, -1
    mark = f"{result.name}/mark{number}"
    joined = Add(
        name=f"{node.name}/mark{number}",
        inputs=(marks[0], marks[1]),
        output=mark,
        affine=SUM,
        table=seen.tobytes(),
        origin=node.origin,
    )
    builder.emit(joined, _plain(mark, result))
    return mark


def _plain(name: str, like: Tensor) -> Tensor:
    return Tensor(name, like.shape, 1.0, 0, False)


def marked_groups(missing: NDArray[np.int64]) -> list[Codes] | None:
    """Divide the missing pairs into few groups that codes can mark; None if it needs too many."""
    pairs = np.argwhere(missing)
    # A difference above one is no rounding of a tie: the constants are wrong, which marks must not hide.
    if not 0 < len(pairs) <= _MOST_PAIRS or np.abs(missing).max() > 1:
        return None
    # Each group costs four nodes, so one group for all pairs is tried before the division into several.
    whole = _codes(missing)
    if whole is not None:
        return [whole]
    parts: list[NDArray[np.int64]] = []
    groups: list[Codes] = []
    # Greedy first fit: each pair joins the first group whose codes stay unambiguous.
    for a, b in pairs:
        for number in range(len(parts) + 1):
            if number == _MOST_GROUPS:
                return None
            part = parts[number].copy() if number < len(parts) else np.zeros_like(missing)
            part[a, b] = missing[a, b]
            codes = _codes(part)
            if codes is not None:
                parts[number:], groups[number:] = [part, *parts[number + 1 :]], [codes, *groups[number + 1 :]]
                break
    return groups


def _codes(missing: NDArray[np.int64]) -> Codes | None:
    """Tables of codes that add up to `_MARK` or `-_MARK` for the missing pairs only; None if there are none.

    Pairs that share a byte of an operand share its code. The codes of the two bytes of a pair add up to the mark.
    """
    pairs = np.argwhere(missing)
    left, right = np.zeros(256, dtype=np.int64), np.zeros(256, dtype=np.int64)
    for number, (a, b) in enumerate(pairs, start=1):
        sign = int(missing[a, b])
        code = left[a] or (sign * _MARK - right[b] if right[b] else sign * number)
        left[a] = code
        right[b] = right[b] or sign * _MARK - code
    # The Add that joins the codes saturates, so the check uses saturated sums.
    total = np.clip(left[:, None] + right[None, :], -128, 127)
    marked = (total == _MARK).astype(np.int64) - (total == -_MARK)
    if not np.array_equal(marked, missing) or max(np.abs(left).max(), np.abs(right).max()) > 127:
        return None
    return left.astype(np.int8), right.astype(np.int8)
