"""Pass `products`: make the constants after a product with constant weights part of its weights and bias.

Some quantizers leave `MatMul -> Add(bias)` and `Conv -> BatchNormalization` without a QuantizeLinear between. Add and
BatchNormalization with constants per output channel compute `factor * product + offset`: the factor becomes part of the
weights' scales, its sign part of the weights, and the offset is the bias. A MatMul becomes a Gemm over its rows. A
Transpose or Identity of quantized constants is computed first.

Runs after `constants`. Only chains that end in a QuantizeLinear, after clamps, are rewritten: others are float.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.patterns.data_movement import is_data_movement
from intloom.compiler.fold.patterns.qparams import (
    DEQUANTIZE,
    dequantize,
    is_dequantize,
    is_quantize,
    read_qparams,
    stored_constant,
    stored_value,
)
from intloom.compiler.fold.patterns.quantization_unit import CLAMPS
from intloom.compiler.importer import STANDARD, Array, Constant, Model, OnnxNode, infer
from intloom.compiler.importer.model import INTEGER_RANGES

Reals = NDArray[np.float64]


def fold_products(model: Model) -> Model:
    """Apply the pass."""
    model = _with_moved_constants(model)
    products = [p for n in model.nodes if (p := _match(model, n)) is not None]
    if not products:
        return model
    rewriter = _Rewriter(model)
    last = {(*p.nodes, *p.clamps)[-1].name: p for p in products}
    gone = {n.name for p in products for n in (*p.nodes, *p.clamps)}
    for node in model.nodes:
        if node.name in last:
            rewriter.rewrite(last[node.name])
        elif node.name not in gone:
            rewriter.nodes.append(node)
    return infer(model.with_nodes(rewriter.nodes, constants=rewriter.constants))


def _with_moved_constants(model: Model) -> Model:
    """Store quantized constants as a Transpose or Identity of their real values gives them."""
    nodes: list[OnnxNode] = []
    constants: dict[str, Constant] = {}
    for node in model.nodes:
        value = node.input(0)
        source = model.constants.get(stored_value(model, value))
        maker = model.producers.get(value)
        moves = node.op in ("Transpose", "Identity") and not node.domain and node.outputs[0] not in model.outputs
        if not moves or source is None or maker is None or read_qparams(model, maker).block:
            nodes.append(node)
            continue
        axes = tuple(range(source.array.ndim))
        order = node.integers("perm", axes[::-1]) if node.op == "Transpose" else axes
        stored = f"{node.outputs[0]}/stored"
        constants[stored] = Constant(np.ascontiguousarray(source.array.transpose(order)), source.dtype)
        params = read_qparams(model, maker)
        axis = {} if params.per_tensor else {"axis": order.index(params.axis)}
        inputs = (stored, *maker.inputs[1:])
        nodes.append(OnnxNode(node.name, DEQUANTIZE, inputs, node.outputs, axis, origin=maker.origins))
    return model.with_nodes(nodes, constants=constants) if constants else model


@dataclass(frozen=True, eq=False)
class _Product:
    """A product and operators after it, which compute the product times a factor, plus an offset."""

    nodes: tuple[OnnxNode, ...]
    weight_axis: int
    """Axis of the output channels."""
    factor: Reals
    offset: Reals
    bias: str = ""
    """The value that is the offset, if it is one operand's."""
    clamps: tuple[OnnxNode, ...] = ()
    """Clamps of a MatMul's sums, which stay next to them where rows are reshaped."""

    @property
    def result(self) -> str:
        """The last value."""
        return (*self.nodes, *self.clamps)[-1].outputs[0]


def _match(model: Model, node: OnnxNode) -> _Product | None:
    """The product that starts at a node, if operators with constants for each channel follow."""
    if node.domain != STANDARD or node.op not in ("Conv", "MatMul"):
        return None
    source, axis = model.producers.get(node.input(0)), int(node.op == "MatMul")
    weights, shape = stored_constant(model, node.input(1)), model.shape(node.outputs[0])
    if source is None or not (is_dequantize(source) or is_data_movement(source)) or weights is None or not shape:
        return None
    bias = _real(model, node.input(2)) if node.input(2) else np.zeros(())
    if bias is None or 0 in shape or (axis and weights.ndim != 2):
        return None
    channels = (weights.shape[axis],)
    product = _Product((node,), axis, np.ones(channels), np.broadcast_to(bias, channels), node.input(2))
    while (reader := _only_reader(model, product)) is not None:
        longer = _extended(model, product, reader)
        if longer is None:
            break
        product = longer
    if len(product.nodes) == 1 or not _ends_quantized(model, product.result) or _signed(model, product) is None:
        return None
    while axis and (reader := _only_reader(model, product)) is not None and reader.op in CLAMPS:
        product = replace(product, clamps=(*product.clamps, reader))
    return product


def _only_reader(model: Model, product: _Product) -> OnnxNode | None:
    users = () if product.result in model.outputs else model.users(product.result)
    return users[0] if len(users) == 1 else None


def _extended(model: Model, product: _Product, node: OnnxNode) -> _Product | None:
    """The product with one operator more, or None if it is no factor and offset for each channel."""
    value, nodes = product.nodes[-1].outputs[0], (*product.nodes, node)
    rank = len(model.shape(value) or ())
    if node.op == "BatchNormalization" and node.input(0) == value and product.weight_axis == 0:
        given = [g for v in node.inputs[1:5] if (g := _real(model, v)) is not None]
        if len(given) < 4:
            return None
        gamma, beta, mean, variance = given
        factor = gamma / np.sqrt(variance + node.real("epsilon", 1e-5))
        offset = (product.offset - mean) * factor + beta
        return replace(product, nodes=nodes, factor=product.factor * factor, offset=offset, bias="")
    if node.op != "Add" or node.domain:
        return None
    other = node.input(int(node.input(0) == value))
    constant = _real(model, other)
    form = [1] * rank
    form[rank - 1 if product.weight_axis else 1] = -1
    if constant is None or constant.shape != product.offset.reshape(form).shape[rank - constant.ndim :]:
        return None
    plain = constant.ndim == 1 and len(product.nodes) == 1 and not product.bias
    return replace(product, nodes=nodes, offset=product.offset + constant.ravel(), bias=other if plain else "")


def _real(model: Model, value: str) -> Reals | None:
    """The real values of a constant, which may be quantized; None if the value is computed."""
    stored, constant = stored_constant(model, value), model.constant(value)
    if stored is not None:
        return dequantize(stored, read_qparams(model, model.producers[value])).astype(np.float64)
    return None if constant is None else constant.astype(np.float64)


def _ends_quantized(model: Model, value: str) -> bool:
    """Whether only QuantizeLinear nodes read a value, after clamps and data movement."""
    readers = () if value in model.outputs else model.users(value)
    return bool(readers) and all(
        is_quantize(n)
        or ((n.op in CLAMPS or is_data_movement(n)) and all(_ends_quantized(model, v) for v in n.outputs if v))
        for n in readers
    )


@dataclass
class _Rewriter:
    """The rewritten nodes and constants."""

    model: Model
    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)

    def rewrite(self, product: _Product) -> None:
        """Write a product whose weights and bias include the operators after it."""
        start, origin = product.nodes[0], tuple(o for n in product.nodes for o in n.origins)
        weights, bias = start.input(1), product.bias
        if (product.factor != 1).any():
            weights = self._scaled(product, origin)
        if not bias:
            bias = self._constant(f"{start.name}/offset", product.offset.astype(np.float32))
        if start.op == "Conv":
            inputs = (start.input(0), weights, bias)
            self.nodes.append(replace(start, inputs=inputs, outputs=(product.result,), origin=origin))
            return
        rows, stored = f"{start.name}/rows", stored_constant(self.model, weights)
        assert stored is not None  # `_match` read it
        self._reshape(start.input(0), rows, (-1, len(stored)), origin)
        value = f"{start.name}/sums"
        self.nodes.append(OnnxNode(start.name, "Gemm", (rows, weights, bias), (value,), origin=origin))
        for clamp in product.clamps:
            self.nodes.append(replace(clamp, inputs=(value, *clamp.inputs[1:]), outputs=(f"{clamp.name}/rows",)))
            value = f"{clamp.name}/rows"
        self._reshape(value, product.result, self.model.shape(product.result) or (), origin)

    def _reshape(self, value: str, result: str, shape: tuple[int, ...], origin: tuple[str, ...]) -> None:
        size = self._constant(f"{result}/size", np.array(shape, np.int64))
        self.nodes.append(OnnxNode(f"{result}/reshape", "Reshape", (value, size), (result,), origin=origin))

    def _constant(self, name: str, array: Array, dtype: str = "") -> str:
        self.constants[name] = Constant(array, dtype or {"float32": "float"}.get(array.dtype.name, array.dtype.name))
        return name

    def _scaled(self, product: _Product, origin: tuple[str, ...]) -> str:
        """Weights of the same integers, or of their negations, with the factors in their scales."""
        maker = self.model.producers[product.nodes[0].input(1)]
        params, name = read_qparams(self.model, maker), f"{product.nodes[0].name}/scaled"
        stored, form = _signed(self.model, product), product.factor.shape
        assert stored is not None  # `_match` found it
        # With the factor 0, as in a residual block that is not trained yet, a channel's weights are 0 at any scale.
        sizes = np.where(product.factor, np.abs(product.factor), 1)
        parts = (
            self._constant(f"{name}/stored", stored, params.dtype),
            self._constant(f"{name}/scale", (params.scale * sizes).astype(np.float32)),
            self._constant(f"{name}/zero", np.broadcast_to(params.zero_point, form).astype(stored.dtype), params.dtype),
        )
        self.nodes.append(OnnxNode(name, DEQUANTIZE, parts, (name,), {"axis": 0}, origin=origin))
        return name


def _signed(model: Model, product: _Product) -> Array | None:
    """The stored weights, times the sign of the factor; None if their type does not have these values."""
    maker = model.producers[product.nodes[0].input(1)]
    params, array = read_qparams(model, maker), model.constants[maker.input(0)].array
    if (product.factor == 1).all():
        return array
    if params.block or (not params.per_tensor and params.axis) or not np.isfinite(product.factor).all():
        return None
    sign = np.sign(product.factor).astype(np.int64).reshape(-1, *(1,) * (array.ndim - 1))
    _, zero = params.spread(array.shape)
    moved, (low, high) = zero + sign * (array.astype(np.int64) - zero), INTEGER_RANGES[params.dtype]
    return moved.astype(array.dtype) if moved.min() >= low and moved.max() <= high else None
