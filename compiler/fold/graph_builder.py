"""What a lowering works with: the operands it may read, the nodes it adds, and the registry it stands in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, QParams, read_qparams
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.patterns.unsupported import UnsupportedPattern
from intloom.compiler.fold.target import Target
from intloom.compiler.importer import Model, OnnxNode
from intloom.compiler.ir import Node, Table, Tensor
from intloom.hw.spec.arith import RoundingMode

Shape4 = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Operand:
    """A quantized float value: the integers behind it and their meaning."""

    tensor: Tensor
    params: QParams
    shape: tuple[int, ...]
    """Its shape in the model; the tensor's own may hold the same values in another form (after a Flatten)."""

    @property
    def has_model_shape(self) -> bool:
        """The tensor's shape is the model's own, padded to four dimensions."""
        return self.tensor.shape == as_image(self.shape)


@dataclass(frozen=True, eq=False)
class ByteFunction:
    """A tensor as a function of one byte of another: `table[root & 0xFF]`."""

    root: str
    table: NDArray[np.int8]


def as_image(shape: tuple[int, ...]) -> Shape4:
    """A model's shape as (1, C, H, W).

    Raises
    ------
    UnsupportedPattern
        The batch is not 1 or there are more than four dimensions.
    """
    if not 2 <= len(shape) <= 4:
        raise UnsupportedPattern(
            f"a tensor of shape {shape} is no batch of vectors, sequences or images", "use two to four dimensions"
        )
    if shape[0] != 1:
        raise UnsupportedPattern(f"a batch of {shape[0]} images", "export the model with batch size 1")
    if min(shape) < 1:
        raise UnsupportedPattern(f"an empty tensor of shape {shape}", "remove the node")
    channels = shape[1]
    if len(shape) == 2:
        return (1, channels, 1, 1)
    return (1, channels, 1, shape[2]) if len(shape) == 3 else (1, channels, shape[2], shape[3])


@dataclass(eq=False)
class GraphBuilder:
    """The integer graph while it grows."""

    model: Model
    match: RoundingMode
    extra_outputs: frozenset[str] = frozenset()
    """Values that onnxruntime gives out besides the outputs."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    views: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """The model's stored integers -> tensor of the graph that holds them, and their shape in the model."""
    functions: dict[str, ByteFunction] = field(default_factory=dict)
    targets: dict[str, tuple[Target, str]] = field(default_factory=dict)
    remedies: dict[str, str] = field(default_factory=dict)
    warnings: dict[str, str] = field(default_factory=dict)
    """Warnings of single lowerings, by the node of the model."""
    mode_dependent: list[str] = field(default_factory=list)
    """Nodes whose results depend on onnxruntime's optimization level."""
    inputs: list[str] = field(default_factory=list)
    """Stored integers that are inputs of the graph."""
    host_computed: list[str] = field(default_factory=list)
    """The entries that the host makes from other integers, in the model's order."""
    producing_nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """For stored integers the nodes of the unit that makes them."""

    def operand(self, value: str) -> Operand:
        """The integers behind a float value.

        Raises
        ------
        UnsupportedPattern
            The value is not quantized, or its integers are made on the host.
        """
        node = self.model.producers.get(value)
        if node is None or node.op != DEQUANTIZE:
            raise UnsupportedPattern(
                f"{value!r} is float: it is not quantized", "quantize it (a QuantizeLinear, DequantizeLinear pair)"
            )
        source = node.inputs[0]
        if source not in self.views:
            raise UnsupportedPattern(
                f"{value!r} comes from a part that runs on the host", "make the nodes before it integer"
            )
        name, shape = self.views[source]
        tensor, params = self.tensors[name], read_qparams(self.model, node)
        if not (params.per_tensor and (params.dtype == "uint8") == tensor.unsigned):
            raise UnsupportedPattern(
                f"{value!r} is dequantized as {params.dtype} or with several scales",
                "use the stored type, and one scale",
            )
        if (float(params.scale), params.zero_int8) != (tensor.scale, tensor.zero_point):
            raise UnsupportedPattern(
                f"{value!r} is dequantized with another scale or zero point than it was quantized with",
                "give both nodes the same scale and zero point",
            )
        return Operand(tensor, params, shape)

    def image(self, value: str) -> Operand:
        """Like `operand`, for lowerings that need the tensor in the model's own shape."""
        found = self.operand(value)
        if not found.has_model_shape:
            raise UnsupportedPattern(
                f"{value!r} is a reshaped view {found.shape} of a tensor {found.tensor.shape}",
                "let a Gemm or an output follow a Flatten",
            )
        return found

    def result(self, unit: QuantizationUnit) -> Tensor:
        """The tensor that a unit makes, by its QuantizeLinear."""
        shape = self.model.shape(unit.output)
        if shape is None:
            raise UnsupportedPattern(f"the shape of {unit.output!r} is not known", "export the model with fixed sizes")
        return self.tensor(unit.output, as_image(shape), self.params(unit))

    def params(self, unit: QuantizationUnit) -> QParams:
        """Scale and zero point of a unit's result."""
        return read_qparams(self.model, unit.quantize)

    def tensor(self, name: str, shape: Shape4, params: QParams) -> Tensor:
        """A new tensor description of byte type and one scale."""
        if params.dtype not in ("int8", "uint8"):
            raise UnsupportedPattern(f"{name!r} is stored as {params.dtype}", "quantize activations to uint8 or int8")
        if not params.per_tensor:
            raise UnsupportedPattern(f"{name!r} has several scales", "quantize activations per tensor")
        return Tensor(name, shape, float(params.scale), params.zero_int8, params.unsigned)

    def emit(self, node: Node, result: Tensor) -> None:
        """Add a node and the tensor that it makes; one operator may give several nodes, so names are told apart."""
        taken = {n.name for n in self.nodes}
        name, copy = node.name, 1
        while name in taken:
            copy += 1
            name = f"{node.name}#{copy}"
        self.nodes.append(replace(node, name=name))
        self.tensors[result.name] = result

    def finish(self, unit: QuantizationUnit, node: Node, result: Tensor, target: Target, note: str = "") -> None:
        """Add a unit's last node; its result stands for the unit's stored integers."""
        self.emit(replace(node, origin=node.origin or unit.origins), result)
        self.bind(unit.output, result.name)
        self.assign(unit, target, note)

    def bind(self, stored: str, tensor: str) -> None:
        """Say which tensor holds the model's stored integers."""
        shape = self.model.shape(stored)
        if shape is None:
            raise UnsupportedPattern(f"the shape of {stored!r} is not known", "export the model with fixed sizes")
        self.views[stored] = (tensor, shape)

    def assign(self, unit: QuantizationUnit, target: Target, note: str = "") -> None:
        """Record where a unit's nodes went."""
        for n in unit.nodes:
            self.targets.setdefault(n.name, (target, note))

    def on_accelerator(self, name: str) -> bool:
        """Whether a node of the model went to the accelerator."""
        target = self.targets.get(name)
        return target is not None and target[0] not in (Target.HOST, Target.UNSUPPORTED)

    def function(self, tensor: str) -> ByteFunction:
        """A tensor as a function of one byte: of itself where nothing better is known."""
        return self.functions.get(tensor) or ByteFunction(tensor, all_bytes())

    def table_node(self, name: str, source: str, table: NDArray[np.int8], result: str) -> Table:
        """A Table node."""
        return Table(name=name, inputs=(source,), output=result, table=table.tobytes())


def unit_name(unit: QuantizationUnit) -> str:
    """Name for a unit's node: its main operator's, else its QuantizeLinear's."""
    main: OnnxNode = unit.main or unit.quantize
    return main.name
