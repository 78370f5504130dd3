"""Checks that the instruction set and the hardware's parameters can express a node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.compiler.emit.constants import surplus_bits
from intloom.compiler.ir import Conv, IntGraph, MatMul, Node
from intloom.hw.spec.arith import INT8_MIN, LARGEST_DIFFERENCE
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams


def unsupported(node: Node, reason: str, remedy: str) -> UnsupportedError:
    """The error for a node that cannot run: reason and remedy reach the user."""
    return UnsupportedError(f"node {node.name!r} ({type(node).__name__}): {reason}; {remedy}")


def check_fields(node: Node, kind: Kind, values: dict[str, int]) -> None:
    """Check that values fit the fields of an instruction."""
    for name, value in values.items():
        field = BY_KIND[kind].field(name)
        if not field.minimum <= value <= field.maximum:
            raise unsupported(
                node, f"{name} must be from {field.minimum} to {field.maximum}, not {value}", "split the node"
            )


def check_instruction(node: Node, kind: Kind, params: HardwareParams) -> None:
    """Check that the hardware has an instruction."""
    option = BY_KIND[kind].requires
    if option and not getattr(params, option):
        raise unsupported(node, f"this hardware lacks the instruction {kind}", f"set {option} = true")


def window_fields(kernel: tuple[int, int], strides: tuple[int, int]) -> dict[str, int]:
    """The instruction fields of a window."""
    return {"kernel_h": kernel[0], "kernel_w": kernel[1], "stride_h": strides[0], "stride_w": strides[1]}


def check_widths(graph: IntGraph, params: HardwareParams) -> None:
    """Check that scales fit the requantizers' mantissas, and sums the accumulators."""
    for node in graph.nodes:
        if isinstance(node, Conv | MatMul):
            mantissas, shifts = np.atleast_1d(node.mantissa).astype(np.int64), np.atleast_1d(node.shift)
            _check_scales(node, mantissas, shifts, params.mantissa_bits)
            # Sums of 32 bits wrap, as in the golden model; all weights are added up for narrower ones only.
            if params.acc_bits < _SUM_BITS:
                _check_sums(node, _largest_sum(node, graph), params.acc_bits)


def _check_scales(
    node: Node, mantissas: NDArray[np.int64], shifts: NDArray[np.unsignedinteger], available: int
) -> None:
    """Low bits of a mantissa that are 0 need no bits of the hardware."""
    surplus = surplus_bits(mantissas, available)
    if np.any(mantissas & (1 << surplus) - 1) or np.any(shifts < surplus):
        raise unsupported(
            node, f"a scale needs more than the {available} mantissa bits of this hardware", "use mantissa_bits = 24"
        )


def _largest_sum(node: Conv | MatMul, graph: IntGraph) -> int:
    """A bound of the magnitude of all sums of products."""
    if isinstance(node, MatMul):
        return graph.tensors[node.inputs[0]].channels * -INT8_MIN * LARGEST_DIFFERENCE
    return int(np.abs(node.weights.astype(np.int64)).sum(axis=(1, 2, 3)).max(initial=0)) * -INT8_MIN


def _check_sums(node: Node, largest: int, available: int) -> None:
    if largest >= 1 << (available - 1):
        needed = min(largest.bit_length() + 1, _SUM_BITS)
        raise unsupported(
            node, f"its sums may need {needed} bits, and accumulators have {available}", f"use acc_bits = {needed}"
        )


_SUM_BITS = 32


def check_sizes(graph: IntGraph) -> None:
    """Check that every tensor's height and width fit the instruction fields."""
    largest = BY_KIND[Kind.CONV].field("in_w").maximum
    for tensor in graph.tensors.values():
        if max(tensor.height, tensor.width) > largest:
            raise UnsupportedError(
                f"tensor {tensor.name!r} must be at most {largest} pixels high and wide, not "
                f"{tensor.height}x{tensor.width}"
            )
