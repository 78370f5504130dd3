"""The integer graph itself: tensors by name, nodes in an order in which every input is made before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from intloom.compiler.ir.ops import Conv, ConvTranspose, Node


@dataclass(frozen=True)
class Tensor:
    """An int8 tensor: shape (N, C, H, W) with N = 1; vectors are (1, C, 1, 1).

    `scale` and `zero_point` (in int8 terms) say what real number a value stands for. `unsigned` tells that the
    model's own type is uint8: its values are these plus 128.
    """

    name: str
    shape: tuple[int, int, int, int]
    scale: float
    zero_point: int
    unsigned: bool

    @property
    def channels(self) -> int:
        """C."""
        return self.shape[1]

    @property
    def height(self) -> int:
        """H."""
        return self.shape[2]

    @property
    def width(self) -> int:
        """W."""
        return self.shape[3]


@dataclass(frozen=True, eq=False)
class IntGraph:
    """An immutable graph of integer operations; `intloom.compiler.ir.verify` checks every rule that it must obey."""

    name: str
    tensors: Mapping[str, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def producer(self, tensor: str) -> Node | None:
        """The node that writes `tensor`, or None for a graph input."""
        return next((n for n in self.nodes if n.output == tensor), None)

    def consumers(self, tensor: str) -> tuple[Node, ...]:
        """The nodes that read `tensor`, in order."""
        return tuple(n for n in self.nodes if tensor in n.inputs)


def macs(node: Node, tensors: Mapping[str, Tensor]) -> int:
    """True multiply-accumulates of a node, without padding."""
    if not isinstance(node, Conv):
        return 0
    # Each input pixel of a transposed convolution, each output pixel of another, meets the whole kernel.
    place = tensors[node.inputs[0] if isinstance(node, ConvTranspose) else node.output]
    return place.height * place.width * int(node.weights[0].size)
