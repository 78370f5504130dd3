"""Refuses, by name, nodes that the instruction set cannot express."""

from __future__ import annotations

from intloom.common.errors import UnsupportedError
from intloom.compiler.ir import Add, AvgPool, Concat, Conv, Custom, IntGraph, MaxPool, Mul, Node, Resize, Slice, Table
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams

_KNOWN = (Add, AvgPool, Concat, Conv, MaxPool, Mul, Resize, Slice, Table)
_WINDOW_SUM_BITS = 17
_INT8_BITS = 7


def _refuse(node: Node, what: str, remedy: str) -> UnsupportedError:
    return UnsupportedError(f"node {node.name!r} ({type(node).__name__}): {what}; {remedy}")


def _check_range(node: Node, kind: Kind, values: dict[str, int]) -> None:
    for name, value in values.items():
        field = BY_KIND[kind].field(name)
        if not field.minimum <= value <= field.maximum:
            raise _refuse(
                node, f"{name} must be from {field.minimum} to {field.maximum}, not {value}", "split the node"
            )


def _windows(kernel: tuple[int, int], strides: tuple[int, int]) -> dict[str, int]:
    return {"kernel_h": kernel[0], "kernel_w": kernel[1], "stride_h": strides[0], "stride_w": strides[1]}


def _check_conv(node: Conv, packed: bool, params: HardwareParams) -> None:
    kernel = (node.weights.shape[3], node.weights.shape[4])
    if packed:
        kernel = (kernel[0], -(-kernel[1] // params.pixels_per_word))
    dilation = {"dilation_h": node.dilations[0], "dilation_w": node.dilations[1]}
    _check_range(node, Kind.CONV, _windows(kernel, node.strides) | dilation)


def check_node(node: Node, params: HardwareParams, *, packed: bool) -> None:
    """Refuse a node that no instruction can express on this hardware."""
    if isinstance(node, Custom):
        raise _refuse(node, f"{node.domain}::{node.op} has no schedule", "register one, or run it on the host")
    if not isinstance(node, _KNOWN):
        raise _refuse(node, "it has no schedule to instructions", "run it on the host")
    if isinstance(node, Conv):
        _check_conv(node, packed, params)
    elif isinstance(node, MaxPool):
        _check_range(node, Kind.VMAX, _windows(node.kernel, node.strides))
    elif isinstance(node, AvgPool):
        if not params.vector_average:
            raise _refuse(node, "this hardware cannot average", "set vector_average = true")
        _check_range(node, Kind.VAVG, _windows(node.kernel, node.strides))
        if node.kernel[0] * node.kernel[1] << _INT8_BITS > 1 << _WINDOW_SUM_BITS:
            raise _refuse(node, f"the window may have {1 << _WINDOW_SUM_BITS - _INT8_BITS} pixels", "pool in two steps")
    elif isinstance(node, Mul) and not params.vector_multiply:
        raise _refuse(node, "this hardware cannot multiply two tensors", "set vector_multiply = true")
    elif isinstance(node, Resize):
        _check_range(node, Kind.VCOPY, {"up_h": node.factors[0], "up_w": node.factors[1]})


def check_sizes(graph: IntGraph) -> None:
    """Refuse tensors whose height or width no instruction can express."""
    largest = BY_KIND[Kind.CONV].field("in_w").maximum
    for tensor in graph.tensors.values():
        if max(tensor.height, tensor.width) > largest:
            raise UnsupportedError(
                f"tensor {tensor.name!r} must be at most {largest} pixels high and wide, not "
                f"{tensor.height}x{tensor.width}"
            )
