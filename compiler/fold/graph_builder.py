"""Builder of the integer graph: operator lowerings read operands from it and add nodes to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes
from intloom.compiler.fold.byte_order import Ordered, block_sources, channel_runs, row_major
from intloom.compiler.fold.patterns.qparams import QParams, is_dequantize, read_qparams
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit, find_quantization_units
from intloom.compiler.fold.target import Finding, Target
from intloom.compiler.importer import Model, OnnxNode
from intloom.compiler.ir import Concat, Constant, Node, Slice, Table, Tensor
from intloom.compiler.ir.ops.conv import moving_conv
from intloom.compiler.ir.ops.conv_transpose import spreading_conv
from intloom.compiler.limits import LARGEST_KERNEL, LARGEST_STRIDE
from intloom.compiler.refusals import Refusal, UnsupportedPattern
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.isa import BY_KIND, Kind

Shape4 = tuple[int, int, int, int]

MOST_COPIES = 1 << 20
"""Weights of a convolution that moves bytes; most are zeros, which the array multiplies, too."""
_MOST_JOINED = 3584
"""Pixels of a block times channels, so that the weights of an output block fit the memory of every preset."""
_MOST_SPREAD = BY_KIND[Kind.CONV].field("out_x").maximum
"""Rows or columns that are made of channels."""
_FACTORS = Tensor("", (1, 1, 1, 1), 1.0, 0, False)
"""A tensor whose integers are its values."""


@dataclass(frozen=True, eq=False)
class Operand:
    """A dequantized value: the tensor of the graph that holds its integers, and their quantization."""

    tensor: Tensor
    params: QParams
    shape: tuple[int, ...]
    """Shape in the model; the tensor may hold the same values in another shape (after a Flatten)."""

    @property
    def has_model_shape(self) -> bool:
        """Whether the tensor has the model's shape, extended to four dimensions."""
        return self.tensor.shape == as_image(self.shape)


@dataclass(frozen=True, eq=False)
class ByteFunction:
    """A tensor as an elementwise function of another one: `table[root & 0xFF]`."""

    root: str
    table: NDArray[np.int8]


def as_image(shape: tuple[int, ...]) -> Shape4:
    """Extend a shape of the model to (1, C, H, W).

    Raises
    ------
    UnsupportedPattern
        The batch is not 1 or there are more than four dimensions.
    """
    if not 2 <= len(shape) <= 4:
        raise Refusal.DIMENSIONS(
            f"a tensor of shape {shape} is not a batch of vectors, sequences or images", "use two to four dimensions"
        )
    if shape[0] != 1:
        raise Refusal.BATCH(f"its batch size is {shape[0]}", "export the model with batch size 1")
    if min(shape) < 1:
        raise Refusal.INVALID(f"a tensor of shape {shape} is empty", "remove the node")
    channels = shape[1]
    if len(shape) == 2:
        return (1, channels, 1, 1)
    return (1, channels, 1, shape[2]) if len(shape) == 3 else (1, channels, shape[2], shape[3])


class FoldOptions(NamedTuple):
    """What folding depends on, apart from the model."""

    match: RoundingMode = RoundingMode.ORT
    softmax: bool = False
    """The hardware computes a Softmax."""
    norm: bool = False
    """The hardware computes a layer normalization."""
    weight_sums: bool = True
    """The hardware subtracts a zero point times the sum of weights that are a tensor."""


@dataclass(eq=False)
class GraphBuilder:
    """The integer graph under construction, and the assignment of the model's nodes."""

    model: Model
    options: FoldOptions
    tensors: dict[str, Tensor] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    """By name, in order."""
    views: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """For quantized values of the model: the tensor of the graph that holds them, and their shape in the model."""
    orders: dict[str, Ordered] = field(default_factory=dict)
    """The same for values that lie in their tensor in another order than the model's, or with others between."""
    left_in_order: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """Views of values of `orders` that the host reads, and whose order it changes."""
    functions: dict[str, ByteFunction] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    mode_dependent: list[str] = field(default_factory=list)
    """Nodes whose results depend on onnxruntime's optimization level."""
    irregular: list[str] = field(default_factory=list)
    """QuantizeLinear nodes after sums and products that no affine constants reproduce: ties round irregularly."""
    inputs: list[str] = field(default_factory=list)
    """Quantized values that are inputs of the graph."""
    host_computed: list[str] = field(default_factory=list)
    """Inputs that the host computes from results of the graph, in the model's order."""
    producing_nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """For quantized values: the nodes of the unit that produces them."""

    @cached_property
    def units(self) -> Mapping[str, QuantizationUnit]:
        """The model's quantization units, by the name of their QuantizeLinear."""
        return {u.quantize.name: u for u in find_quantization_units(self.model)}

    def operand(self, value: str) -> Operand:
        """Look up the tensor that holds a dequantized value.

        Raises
        ------
        UnsupportedPattern
            The value is not quantized, or the host computes it.
        """
        node = self._dequantize(value)
        source = node.inputs[0]
        if source not in self.views:
            self._require_order(source, value)
        name, shape = self.views[source]
        return self._checked(value, node, self.tensors[name], shape)

    def operand_in_any_order(self, value: str) -> Operand:
        """Look up the tensor that holds a dequantized value, whose bytes may have another order there."""
        node = self._dequantize(value)
        order = self.orders.get(node.inputs[0])
        if order is None:
            return self.operand(value)
        return self._checked(value, node, self.tensors[order.tensor], order.shape)

    def ordered(self, value: str) -> Ordered | None:
        """Where the values of a dequantized value lie; None if the host computes it."""
        source = self._dequantize(value).inputs[0]
        # A value that was restored for the host still has its own order.
        if source in self.views and source not in self.orders:
            return row_major(*self.views[source])
        return self.orders.get(source)

    def in_model_order(self, value: str) -> bool:
        """Whether a tensor holds a dequantized value in the model's order."""
        return self._dequantize(value).inputs[0] in self.views

    def channels(self, tensor: str, first: int, stop: int) -> str:
        """A tensor of some channels of another one."""
        whole = self.tensors[tensor]
        if (first, stop) == (0, whole.channels):
            return tensor
        maker = next((n for n in self.nodes.values() if n.output == tensor), None)
        name = f"{tensor}/channels{first}_{stop}"
        if name not in self.tensors:
            node = Slice(name=name, inputs=(tensor,), output=name, start=first, stop=stop)
            origin = () if maker is None else maker.origin
            self.emit(
                replace(node, origin=origin),
                replace(whole, name=name, shape=(1, stop - first, whole.height, whole.width)),
            )
        return name

    def _dequantize(self, value: str) -> OnnxNode:
        node = self.model.producers.get(value)
        if node is None or not is_dequantize(node):
            raise Refusal.NOT_QUANTIZED(
                f"{value!r} is not quantized", "quantize it with a QuantizeLinear, DequantizeLinear pair"
            )
        return node

    def _on_host(self, stored: str, value: str) -> UnsupportedPattern:
        """The error for a value that the host computes, with the first cause where a lowering recorded it."""
        maker = self.model.producers.get(stored)
        cause = None if maker is None else self.findings.get(maker.name)
        if cause is None or cause.refusal is None:
            return Refusal.HOST(
                f"the host computes {value!r}", "quantize the operators before it, so that they run on the accelerator"
            )
        if cause.refusal is Refusal.HOST:
            return Refusal.HOST(cause.reason, cause.remedy)
        return Refusal.HOST(f"the host computes {value!r} (row {cause.refusal.number}: {cause.reason})", cause.remedy)

    def _require_order(self, stored: str, value: str) -> None:
        if stored not in self.orders:
            raise self._on_host(stored, value)
        # Checks rank and batch, which a movement operator alone may have in any form.
        as_image(self.orders[stored].shape)
        if not self.join_channels(stored) and not self._join_blocks(stored):
            raise Refusal.ORDER(
                f"{value!r} has its values in another order than tensor {self.orders[stored].tensor!r}",
                "transpose on the host, after the last quantized operator",
            )

    def join_channels(self, stored: str) -> bool:
        """Make a tensor of channels that has the values of `stored` in the model's order; False if there is none."""
        order = self.orders[stored]
        whole = self.tensors[order.tensor]
        runs = channel_runs(order.positions, whole.height * whole.width)
        if runs is None:
            return False
        parts = [self.tensors[self.channels(order.tensor, *run)] for run in runs]
        self.views[stored] = (self.join(parts, f"{stored}/joined").name, order.shape)
        return True

    def _join_blocks(self, stored: str) -> bool:
        """Make an image of the values of `stored`, whose blocks of pixels lie in channels; False if they do not."""
        order = self.orders[stored]
        x = self.tensors[order.tensor]
        sources = block_sources(order.positions, (x.height, x.width))
        if sources is None or not 1 < max(sources.shape[1:]) <= LARGEST_STRIDE:
            return False
        if sources.size * x.channels > MOST_COPIES or sources[0].size * x.channels > _MOST_JOINED:
            return False
        weights = np.zeros((len(sources), x.channels, *sources.shape[1:]), np.int8)
        np.put_along_axis(weights, sources[:, None], 1, axis=1)
        name = f"{stored}/image"
        node = replace(spreading_conv(name, x, weights), origin=self.producing_nodes.get(stored, ()))
        self.emit(node, replace(x, name=name, shape=as_image(order.shape)))
        self.views[stored] = name, order.shape
        return True

    def join(self, parts: Sequence[Tensor], output: str, *, name: str = "", origin: tuple[str, ...] = ()) -> Tensor:
        """The tensor `output` with all parts along channels, which are alike; a single part stays as it is."""
        first = parts[0]
        if len(parts) == 1:
            return first
        whole = replace(first, name=output, shape=(1, sum(p.channels for p in parts), first.height, first.width))
        inputs = tuple(p.name for p in parts)
        self.emit(Concat(name=name or output, inputs=inputs, output=output, origin=origin), whole)
        return whole

    def leave_in_order(self, stored: str) -> bool:
        """Leave the change of a value's order to the host; False if the tensor has other values, too."""
        order = self.orders[stored]
        whole = order.positions.size == prod(self.tensors[order.tensor].shape)
        if whole and order.tensor not in self.inputs:
            self.left_in_order[stored] = order.tensor, order.shape
        return stored in self.left_in_order

    def _checked(self, value: str, node: OnnxNode, tensor: Tensor, shape: tuple[int, ...]) -> Operand:
        """The operand, if its quantization is the tensor's."""
        params = read_qparams(self.model, node)
        if not params.per_tensor:
            raise Refusal.TYPE(f"{value!r} is dequantized with several scales", "use one scale")
        if (float(params.scale), params.zero_int8) != (tensor.scale, tensor.zero_point):
            raise Refusal.TYPE(
                f"{value!r} is dequantized with another scale or zero point than it was quantized with",
                "give both nodes the same scale and zero point",
            )
        return Operand(tensor, params, shape)

    def image(self, value: str) -> Operand:
        """Look up an operand whose tensor must have the model's shape."""
        operand = self.operand(value)
        if operand.has_model_shape:
            return operand
        stored = self._dequantize(value).inputs[0]
        image = self._given_as(operand) or self._flattened(operand, stored) or self._spread(operand, stored)
        if image is None:
            raise Refusal.ORDER(
                f"{value!r} is a reshaped view {operand.shape} of a tensor {operand.tensor.shape}",
                "put only a Gemm or an output after a Flatten",
            )
        return replace(operand, tensor=image)

    def _given_as(self, operand: Operand) -> Tensor | None:
        """An input of the graph as the image that its first reader needs: the same bytes; None if it has readers."""
        x = operand.tensor
        if x.name not in self.inputs or any(x.name in node.inputs for node in self.nodes.values()):
            return None
        self.tensors[x.name] = replace(x, shape=as_image(operand.shape))
        return self.tensors[x.name]

    def _flattened(self, operand: Operand, stored: str) -> Tensor | None:
        """The only pixel of a row, whose channels are all pixels of an operand; None if the row is large."""
        x, shape = operand.tensor, as_image(operand.shape)
        count, name = shape[1], f"{stored}/flat"
        if max(shape[2:]) > 1 or max(x.shape[2:]) > LARGEST_KERNEL or count**2 > MOST_COPIES:
            return None
        if name not in self.tensors:
            node = moving_conv(name, x, np.eye(count, dtype=np.int8).reshape(count, *x.shape[1:]))
            self.emit(replace(node, origin=self.producing_nodes.get(stored, ())), replace(x, name=name, shape=shape))
        return self.tensors[name]

    def _spread(self, operand: Operand, stored: str) -> Tensor | None:
        """An image whose pixels are channels of the only pixel of an operand, as after a Gemm; None if it is large."""
        x, (_, channels, height, width) = operand.tensor, as_image(operand.shape)
        if x.height * x.width > 1 or max(height, width) > _MOST_SPREAD or x.channels * height * width > MOST_COPIES:
            return None
        # First rows, then columns: each step has a part of the weights.
        rows = np.zeros((width, height, width, height, 1), np.int8)
        for y in range(height):
            rows[range(width), y, range(width), y] = 1
        columns = np.eye(width, dtype=np.int8).reshape(1, width, 1, width)
        for weights in (rows.reshape(width, -1, height, 1), columns):
            name = f"{stored}/image{weights.shape[2]}x{weights.shape[3]}"
            if max(weights.shape[2:]) == 1:
                continue
            if name not in self.tensors:
                every = np.tile(weights, (channels, 1, 1, 1))
                size = (x.height * weights.shape[2], x.width * weights.shape[3])
                node = spreading_conv(name, x, every, channels)
                result = replace(x, name=name, shape=(1, len(every), *size))
                self.emit(replace(node, origin=self.producing_nodes.get(stored, ())), result)
            x = self.tensors[name]
        return x

    def result(self, unit: QuantizationUnit) -> Tensor:
        """Describe the tensor that a unit produces, from its QuantizeLinear."""
        return self.tensor(unit.output, as_image(self.shape(unit.output)), self.params(unit))

    def shape(self, value: str) -> tuple[int, ...]:
        """The shape of a value, which a lowering needs."""
        shape = self.model.shape(value)
        if shape is None:
            raise Refusal.OPEN_SIZE(f"the shape of {value!r} is unknown", "export the model with fixed sizes")
        return shape

    def params(self, unit: QuantizationUnit) -> QParams:
        """Quantization parameters of a unit's result."""
        return read_qparams(self.model, unit.quantize)

    def tensor(self, name: str, shape: Shape4, params: QParams) -> Tensor:
        """Describe an 8-bit tensor with one scale."""
        if params.dtype not in ("int8", "uint8"):
            raise Refusal.TYPE(f"{name!r} is stored as {params.dtype}", "quantize activations to uint8 or int8")
        if not params.per_tensor:
            raise Refusal.TYPE(
                f"{name!r} has a scale for each channel, and integer sums over channels need one",
                "quantize activations per tensor; only weights may have a scale per channel",
            )
        return Tensor(name, shape, float(params.scale), params.zero_int8, params.unsigned)

    def emit(self, node: Node, result: Tensor) -> None:
        """Add a node and its result; make the node's name unique, since one operator may become several nodes."""
        name, copy = node.name, 1
        while name in self.nodes:
            copy += 1
            name = f"{node.name}#{copy}"
        self.nodes[name] = replace(node, name=name)
        self.tensors[result.name] = result

    def constant(self, name: str, values: NDArray[np.int8], origin: tuple[str, ...], like: Tensor = _FACTORS) -> Tensor:
        """Add a constant of channels, rows and columns with the scale of `like`."""
        result = replace(like, name=name, shape=(1, *values.shape))
        self.emit(Constant(name=name, inputs=(), output=name, values=values, origin=origin), result)
        return result

    def refusal_of(self, action: Callable[[], None]) -> UnsupportedError | None:
        """Run an action. If it is refused, remove what it added and return the error."""
        undo = self.checkpoint()
        try:
            action()
        except UnsupportedError as error:
            undo()
            return error
        return None

    def checkpoint(self) -> Callable[[], None]:
        """A function that removes everything that is added from now on: a lowering may fail after it added nodes."""
        nodes, tensors, views, orders = dict(self.nodes), dict(self.tensors), dict(self.views), dict(self.orders)
        left = dict(self.left_in_order)

        def undo() -> None:
            self.nodes, self.tensors, self.views, self.orders = nodes, tensors, views, orders
            self.left_in_order = left

        return undo

    def finish(self, unit: QuantizationUnit, node: Node, result: Tensor, target: Target, note: str = "") -> None:
        """Add a unit's last node, whose result holds the unit's quantized value, and assign the unit to `target`."""
        self.emit(replace(node, origin=node.origin or unit.origins), result)
        self.bind(unit.output, result.name)
        self.assign(unit, target, note)

    def bind(self, stored: str, tensor: str) -> None:
        """Record which tensor holds a quantized value of the model, in the model's order."""
        assert stored not in self.orders, stored
        self.views[stored] = (tensor, self.shape(stored))

    def assign(self, unit: QuantizationUnit, target: Target, note: str = "") -> None:
        """Assign a unit's nodes to a target."""
        for n in unit.nodes:
            self.findings.setdefault(n.name, Finding(target, note))

    def on_accelerator(self, name: str) -> bool:
        """Whether a node of the model runs on the accelerator."""
        finding = self.findings.get(name)
        return finding is not None and finding.target not in (Target.HOST, Target.UNSUPPORTED)

    def function(self, tensor: str) -> ByteFunction:
        """The tensor as an elementwise function of another one, or of itself if none is recorded."""
        return self.functions.get(tensor) or ByteFunction(tensor, all_bytes())

    def table_node(self, name: str, source: str, table: NDArray[np.int8], result: str) -> Table:
        """Create a Table node."""
        return Table(name=name, inputs=(source,), output=result, table=table.tobytes())


def unit_name(unit: QuantizationUnit) -> str:
    """Name of a unit's node: that of its main operator, or of its QuantizeLinear if it has none."""
    main: OnnxNode = unit.main or unit.quantize
    return main.name
