"""Checks that the instruction set and the hardware's parameters can express a node."""

from __future__ import annotations

from intloom.common.errors import UnsupportedError
from intloom.compiler.ir import IntGraph, Node
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


def check_sizes(graph: IntGraph) -> None:
    """Check that every tensor's height and width fit the instruction fields."""
    largest = BY_KIND[Kind.CONV].field("in_w").maximum
    for tensor in graph.tensors.values():
        if max(tensor.height, tensor.width) > largest:
            raise UnsupportedError(
                f"tensor {tensor.name!r} must be at most {largest} pixels high and wide, not "
                f"{tensor.height}x{tensor.width}"
            )
