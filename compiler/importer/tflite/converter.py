"""Conversion of a TFLite file to a `Model` in QDQ form, with images in the order that ONNX has.

Each operator of the file becomes one quantization unit, or several: DequantizeLinear nodes, the float operator, and
the QuantizeLinear of its result. The float operator of an elementwise unit carries the operator of the file, whose
kernel in LiteRT defines its results (`OnnxNode.qoperator`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from intloom.common.errors import FileFormatError, UnsupportedError
from intloom.common.registry import Registry
from intloom.compiler.importer.model import (
    MICROSOFT,
    STANDARD,
    TFLITE,
    Array,
    Attribute,
    Constant,
    Model,
    OnnxNode,
    ValueType,
)
from intloom.compiler.importer.reinfer import infer
from intloom.compiler.importer.tflite.file import (
    ELEMENTS,
    TfliteFile,
    TfliteOperator,
    TfliteTensor,
)
from intloom.compiler.importer.tflite.view import CHANNELS_FIRST, Order, View, identity, inverse, permuted, reshaped
from intloom.compiler.importer.tflite.writer import one_operator
from intloom.compiler.refusals import Refusal, UnsupportedPattern

_OPSET = 21
_ONNX_TYPES = {"BOOL": "bool", "INT8": "int8", "UINT8": "uint8", "INT32": "int32", "INT64": "int64", "FLOAT32": "float"}


_MOVEMENTS = frozenset({"DepthToSpace", "MaxPool", "Pad", "ReduceMax", "Resize", "Slice", "SpaceToDepth", "Split"})
"""Operators of which LiteRT's kernels move bytes whatever these represent."""
ConversionRule = Callable[["Converter", TfliteOperator], None]


@dataclass(frozen=True)
class Conversion:
    """How an operator becomes nodes of the model, and which operands it takes."""

    rule: ConversionRule
    stored: tuple[int, ...]
    """Positions of operands that must hold 8-bit values with one scale, as the results then must."""
    floats: bool
    """Takes any floats, not only those that were dequantized."""


CONVERSIONS: Registry[str, Conversion] = Registry("a conversion")


def converts(
    *codes: str, stored: tuple[int, ...] = (), floats: bool = False
) -> Callable[[ConversionRule], ConversionRule]:
    """Register the conversion of operators, with the operands that it takes; see `Conversion`."""

    def decorate(rule: ConversionRule) -> ConversionRule:
        CONVERSIONS.register(*codes)(Conversion(rule, stored, floats))
        return rule

    return decorate


@dataclass(frozen=True)
class Unit:
    """The float operator of a quantization unit."""

    op: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    exact: TfliteOperator | None = None
    """The operator that LiteRT evaluates."""
    images: tuple[int, ...] = ()
    """Its constants that LiteRT takes as inputs, since they differ between pixels."""
    bounds: tuple[int, int] | None = None
    """Smallest and largest stored result."""
    shape: tuple[int, ...] = ()
    """Shape of the result in the order of the file, if it is not that of the file's tensor."""


@dataclass(eq=False)
class Converter:
    """The model under construction."""

    file: TfliteFile
    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    types: dict[str, ValueType] = field(default_factory=dict)
    views: dict[int, View] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    """Values outside the units: stored inputs, dequantized floats, and what is made of them there."""
    _operands: dict[int, str] = field(default_factory=dict)
    """The stored values that the operator at hand reads, for its tensors."""

    def __post_init__(self) -> None:
        for index in self.file.inputs:
            tensor = self.file.tensors[index]
            self.views[index] = View(tensor.name, identity(len(tensor.shape)))
            self.types[tensor.name] = ValueType(self.onnx_type(tensor), tensor.shape)
            if tensor.quantized:
                self.outside.add(tensor.name)

    def tensor(self, index: int) -> TfliteTensor:
        """A tensor of the file."""
        return self.file.tensors[index]

    def floats(self, indices: Iterable[int]) -> set[str]:
        """The computed floats among tensors."""
        tensors = {i: self.tensor(i) for i in indices if i >= 0}
        return {self.view(i).value for i, t in tensors.items() if t.dtype == "FLOAT32" and t.data is None}

    def onnx_type(self, tensor: TfliteTensor) -> str:
        """The element type in ONNX's words."""
        if tensor.dtype not in _ONNX_TYPES:
            raise UnsupportedError(
                f"{self.file.name}: tensor {tensor.name!r} must be int8, not {tensor.dtype.lower()}",
                Refusal.TYPE.number,
            )
        return _ONNX_TYPES[tensor.dtype]

    def name(self, op: TfliteOperator) -> str:
        """The name of the operator's node."""
        return self.file.label(op)

    def constant(self, name: str, array: Array, dtype: str = "") -> str:
        """Store an array under a name; returns the name."""
        kind = dtype or ("float" if array.dtype == np.float32 else str(array.dtype))
        self.constants[name] = Constant(np.asarray(array), kind)
        return name

    def integers(self, op: TfliteOperator, position: int) -> list[int]:
        """The values of a constant operand: sizes, axes, bounds."""
        if position >= len(op.inputs):
            raise ValueError(f"it has no operand {position}")
        index = op.inputs[position]
        data = self.tensor(index).data if index >= 0 else None
        if data is None:
            raise Refusal.CONSTANT(f"it computes its operand {position}", "export the model with fixed sizes")
        return [int(v) for v in data.ravel()]

    def view(self, index: int) -> View:
        """Where a tensor lies; a constant becomes a value in the order of the file."""
        if index not in self.views:
            tensor = self.tensor(index)
            if tensor.data is None:
                raise FileFormatError(f"{self.file.name}: tensor {tensor.name!r} is computed by no operator")
            self.constant(tensor.name, tensor.data, self.onnx_type(tensor))
            self.views[index] = View(tensor.name, identity(len(tensor.shape)))
        return self.views[index]

    def natural_order(self, index: int) -> Order:
        """The order for an operator that works in any: that of the value, but channels first for an input image."""
        view = self.view(index)
        return CHANNELS_FIRST if index in self.file.inputs and len(view.order) == len(CHANNELS_FIRST) else view.order

    def in_order(self, index: int, order: Order) -> str:
        """The value of a tensor with its dimensions in this order; a constant is transposed here and now."""
        tensor, view = self.tensor(index), self.view(index)
        if tensor.data is None or view.order == order:
            return self.moved(view, tensor, tensor.shape, order)
        name = f"{tensor.name}/order" + "".join(map(str, order))
        return self.constant(name, tensor.data.transpose(inverse(order)), self.onnx_type(tensor))

    def moved(self, view: View, tensor: TfliteTensor, shape: tuple[int, ...], order: Order) -> str:
        """The value of a view of this shape with its dimensions in another order; it has the scale of `tensor`."""
        if view.order == order:
            return view.value
        # view = transpose(value, view.order) = transpose(result, order)
        name = f"{view.value}/order" + "".join(map(str, order))
        if name not in self.types:
            perm, result = permuted(view.order, inverse(order)), permuted(shape, inverse(order))
            self.movement(tensor, (view.value,), name, result, perm=perm)
        return name

    def reshaped(self, view: View, tensor: TfliteTensor, before: tuple[int, ...], after: tuple[int, ...]) -> View:
        """A view of `before` in another shape: of the value as it lies if that is possible."""
        if before == after:
            return view
        direct = reshaped(before, after, view.order)
        if direct is None:
            view = View(self.moved(view, tensor, before, identity(len(before))), identity(len(before)))
            direct = after, identity(len(after))
        shape, order = direct
        name = f"{view.value}/as" + "x".join(map(str, shape))
        if name not in self.types:
            sizes = self.constant(f"{name}/shape", np.array(shape, np.int64))
            self.movement(tensor, (view.value, sizes), name, shape)
        return View(name, order)

    def reshape(self, index: int, shape: tuple[int, ...], order: Order) -> str:
        """The value of a tensor in another shape of the file, with its dimensions in this order."""
        tensor = self.tensor(index)
        return self.moved(self.reshaped(self.view(index), tensor, tensor.shape, shape), tensor, shape, order)

    def movement(
        self,
        tensor: TfliteTensor,
        inputs: tuple[str, ...],
        stored: str,
        shape: tuple[int, ...],
        perm: Order = (),
    ) -> str:
        """Add a Transpose, or a Reshape, of the values of `tensor`; it keeps their scale.

        The host moves the bytes of an input as they are; a unit of the graph has a DequantizeLinear before it.
        """
        real = tensor.quantized and inputs[0] not in self.outside
        moved = self.dequantized(inputs[0], tensor) if real else inputs[0]
        value = f"{stored}/float" if real else stored
        attributes: dict[str, Attribute] = {"perm": perm} if perm else {}
        op = "Transpose" if perm else "Reshape"
        self.nodes.append(OnnxNode(f"{stored}/{op}", op, (moved, *inputs[1:]), (value,), attributes))
        self.types[stored] = ValueType(self.onnx_type(tensor), shape)
        if real:
            self.quantized(value, stored, tensor, shape)
        elif inputs[0] in self.outside:
            self.outside.add(stored)
        return stored

    def operand(self, index: int, order: Order, shape: tuple[int, ...] = ()) -> str:
        """The float value of an operand in this order, and in another shape of the file if one is given."""
        tensor = self.tensor(index)
        if tensor.data is not None and shape:
            data = tensor.data.reshape(shape).transpose(inverse(order))
            name = f"{tensor.name}/as" + "x".join(map(str, shape)) + "/order" + "".join(map(str, order))
            stored = self.constant(name, data, self.onnx_type(tensor))
        else:
            stored = self.reshape(index, shape, order) if shape else self.in_order(index, order)
        self._operands[index] = stored
        return self.dequantized(stored, tensor)

    def dequantize(self, stored: str, scale: str, value: str) -> str:
        """Add a DequantizeLinear with a scale for each value along the first axis; returns the float value."""
        attributes: dict[str, Attribute] = {"axis": 0} if self.constants[scale].array.ndim else {}
        self.nodes.append(OnnxNode(f"{value}/DQ", "DequantizeLinear", (stored, scale), (value,), attributes))
        return value

    def parameters(self, tensor: TfliteTensor) -> tuple[str, str]:
        """Names of the constants with scale and zero point of a tensor."""
        scale, zero = f"{tensor.name}/scale", f"{tensor.name}/zero_point"
        if scale not in self.constants:
            single = len(tensor.scales) == 1
            element = ELEMENTS[tensor.dtype]
            scales, zeros = np.array(tensor.scales, np.float32), np.array(tensor.zero_points).astype(element)
            self.constant(scale, scales.reshape(()) if single else scales)
            self.constant(zero, zeros.reshape(()) if single else zeros)
        return scale, zero

    def dequantized(self, stored: str, tensor: TfliteTensor, axis: int | None = None) -> str:
        """The float value of a stored value, which has the parameters of `tensor`."""
        if not tensor.scales:
            return stored
        value = f"{stored}/real"
        if value not in self.types:
            constant = self.constants.get(stored)
            self.types[value] = ValueType("float", constant.array.shape if constant else self.types[stored].shape)
            attributes: dict[str, Attribute] = {} if axis is None or len(tensor.scales) == 1 else {"axis": axis}
            node = OnnxNode(f"{value}/DQ", "DequantizeLinear", (stored, *self.parameters(tensor)), (value,), attributes)
            self.nodes.append(node)
        return value

    def quantized(self, value: str, stored: str, tensor: TfliteTensor, shape: tuple[int, ...]) -> None:
        """Add the QuantizeLinear that stores a float value with the parameters of `tensor`."""
        inputs = (value, *self.parameters(tensor))
        self.nodes.append(OnnxNode(f"{stored}/Q", "QuantizeLinear", inputs, (stored,)))
        self.types[stored] = ValueType(self.onnx_type(tensor), shape)

    def finish(self, op: TfliteOperator, unit: Unit, *orders: Order) -> None:
        """Add a unit that computes the results of an operator, whose dimensions have these orders."""
        if unit.op in _MOVEMENTS:
            moved = [self.tensor(i) for i in (*op.inputs, *op.outputs) if i >= 0 and self.tensor(i).data is None]
            if len({(t.scales, t.zero_points) for t in moved}) > 1:
                raise Refusal.TYPE("it moves bytes to a tensor of another scale", "give its result the operand's scale")
        stored = [self.stored_name(i, o, unit.shape) for i, o in zip(op.outputs, orders, strict=True)]
        floats = [f"{s}/float" if self.tensor(i).scales else s for s, i in zip(stored, op.outputs, strict=True)]
        # The clamp of an evaluated operator is a unit of its own, since only the operator alone is evaluated.
        apart = unit.exact is not None and unit.bounds is not None
        unbounded = [f"{stored[0]}/unbounded"] if apart else stored
        qoperator = self._evaluated(unit, unit.exact, unbounded[0], orders[0]) if unit.exact else None
        node = OnnxNode(self.name(op), unit.op, unit.inputs, tuple(floats), unit.attributes, qoperator=qoperator)
        self.nodes.append(node)
        for index, order, name, value, whole in zip(op.outputs, orders, stored, floats, unbounded, strict=True):
            tensor = self.tensor(index)
            shape = unit.shape or tensor.shape
            if prod(shape) != prod(tensor.shape):
                raise ValueError(f"it makes values of shape {shape}, not {tensor.shape}")
            size = permuted(shape, inverse(order))
            if not tensor.scales:
                self.types[name] = ValueType(self.onnx_type(tensor), size)
            else:
                if apart:
                    self.quantized(value, whole, tensor, size)
                    value = self.dequantized(whole, tensor)
                if unit.bounds is not None:
                    value = self._clipped(value, name, tensor, unit.bounds)
                self.quantized(value, name, tensor, size)
            self.views[index] = self.reshaped(View(name, order), tensor, shape, tensor.shape)

    def keep(self, op: TfliteOperator, error: UnsupportedPattern) -> None:
        """Add an operator that has no form in the model: LiteRT runs it on the host."""
        why: dict[str, Attribute] = {"row": error.refusal.name, "reason": error.reason, "remedy": error.remedy}
        inputs = tuple(self.view(i).value if i >= 0 else "" for i in op.inputs)
        names = [self.tensor(i).name for i in op.outputs]
        made = [f"{n}/host" if self.tensor(i).quantized else n for n, i in zip(names, op.outputs, strict=True)]
        self.nodes.append(OnnxNode(self.name(op), op.code, inputs, tuple(made), why, TFLITE))
        for index, name, value in zip(op.outputs, names, made, strict=True):
            tensor = self.tensor(index)
            self.types[value] = ValueType(self.onnx_type(tensor), tensor.shape)
            if tensor.quantized:
                # A unit, so that the operators after it can run on the accelerator.
                real = f"{name}/float"
                self.nodes.append(
                    OnnxNode(f"{name}/from_host", "Identity", (self.dequantized(value, tensor),), (real,))
                )
                self.quantized(real, name, tensor, tensor.shape)
            self.views[index] = View(name, identity(len(tensor.shape)))

    def stored_name(self, index: int, order: Order, shape: tuple[int, ...] = ()) -> str:
        """The tensor's own name for a value as the file has it, or where no output needs that name."""
        name, plain = self.tensor(index).name, order == identity(len(order)) and not shape
        return name if plain or index not in self.file.outputs else f"{name}/result"

    def _evaluated(self, unit: Unit, op: TfliteOperator, result: str, order: Order) -> OnnxNode:
        """The operator of the file, between the stored values that its operands have."""
        data, inputs = one_operator(self.file, op, unit.images)
        values = tuple(self._operands[i] for i in inputs)
        return OnnxNode(self.name(op), op.code, values, (result,), {"flatbuffer": data, "order": order}, TFLITE)

    def _clipped(self, value: str, stored: str, tensor: TfliteTensor, bounds: tuple[int, int]) -> str:
        """Clamp a float value to the real numbers that two stored values represent."""
        clamped = f"{stored}/clamped"
        inputs = (value, *self.clip_bounds(tensor, bounds, clamped))
        self.nodes.append(OnnxNode(f"{clamped}/Clip", "Clip", inputs, (clamped,)))
        return clamped

    def clip_bounds(self, tensor: TfliteTensor, bounds: tuple[int, int], name: str) -> tuple[str, str]:
        """Constants with the real numbers that two stored values represent."""
        scale, zero = np.float32(tensor.scales[0]), tensor.zero_points[0]
        low, high = (np.array(np.float32(b - zero) * scale, np.float32) for b in bounds)
        return self.constant(f"{name}/min", low), self.constant(f"{name}/max", high)

    def model(self) -> Model:
        """The finished model: outputs have the order of the file."""
        for index in self.file.outputs:
            tensor = self.tensor(index)
            view = self.view(index)
            if view.value != tensor.name:
                shape, plain = tensor.shape, identity(len(tensor.shape))
                if view.order == plain:
                    axes = self.constant(f"{tensor.name}/same", np.array(shape, np.int64))
                    self.movement(tensor, (view.value, axes), tensor.name, shape)
                else:
                    self.movement(tensor, (view.value,), tensor.name, shape, perm=view.order)
        model = Model(
            name=self.file.name,
            nodes=tuple(self.nodes),
            inputs=tuple(self.tensor(i).name for i in self.file.inputs),
            outputs=tuple(self.tensor(i).name for i in self.file.outputs),
            constants=self.constants,
            types=self.types,
            opsets={STANDARD: _OPSET, MICROSOFT: 1, TFLITE: 1},
            source=self.file.source,
        )
        inferred = infer(model)
        for name, stated in self.types.items():
            computed = inferred.shape(name)
            if computed not in (None, stated.shape):
                raise FileFormatError(
                    f"{self.file.name}: {name!r} must have the shape {computed} that its operator computes, not "
                    f"{stated.shape}: export the model again"
                )
        return inferred
