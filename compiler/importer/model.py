"""Immutable representation of an ONNX graph, without protobufs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from intloom.common.errors import ModelError

if TYPE_CHECKING:
    from intloom.compiler.importer.tflite.source import TfliteSource

Array = NDArray[Any]

STANDARD = ""
MICROSOFT = "com.microsoft"
TFLITE = "tflite"
"""Domain of the operators of a TFLite file, which LiteRT evaluates."""

INTEGER_RANGES: Mapping[str, tuple[int, int]] = {
    "int2": (-2, 1),
    "uint2": (0, 3),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
}
"""Minimum and maximum of each integer element type of quantized tensors."""


NUMBERED_TYPES: Mapping[int, str] = {
    1: "float",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    10: "float16",
    11: "double",
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}
"""Element types by their `TensorProto.DataType` number, for attributes such as `output_dtype`."""


@dataclass(frozen=True)
class ValueType:
    """Element type (ONNX's name in lower case) and shape of a value; a shape of None is unknown."""

    dtype: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True, eq=False)
class Constant:
    """A stored tensor. Element types that numpy does not have are unpacked: int4 to int8, uint4 to uint8."""

    array: Array
    dtype: str


@dataclass(frozen=True, eq=False)
class Opaque:
    """An attribute that only onnxruntime interprets (a subgraph, a sparse tensor), as serialized in the file.

    `captured` are the values of the outer graph that a subgraph reads by name.
    """

    data: bytes
    captured: tuple[str, ...] = ()


Attribute = int | float | str | bytes | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Constant | Opaque


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """One ONNX node. `origin` lists the nodes of the file that a rewritten node replaces."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    domain: str = STANDARD
    origin: tuple[str, ...] = ()
    qoperator: OnnxNode | None = None
    """The QOperator node of the file (QLinearAdd…) that was rewritten to this node and the Q and DQ nodes around it."""

    @property
    def origins(self) -> tuple[str, ...]:
        """Names of the nodes of the file that this node replaces, or its own name."""
        return self.origin or (self.name,)

    @cached_property
    def captured(self) -> tuple[str, ...]:
        """Values that the subgraphs of this node (of If, Loop, Scan) read by name."""
        return tuple(v for a in self.attributes.values() if isinstance(a, Opaque) for v in a.captured)

    @property
    def reads(self) -> tuple[str, ...]:
        """All values that the node depends on: its inputs, which may be empty names, and captured values."""
        return (*self.inputs, *self.captured)

    def input(self, index: int) -> str:
        """Name of an input, empty if it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def renamed(self, names: Mapping[str, str]) -> OnnxNode:
        """The node with other names of some values."""
        inputs, outputs = (tuple(names.get(v, v) for v in values) for values in (self.inputs, self.outputs))
        return replace(self, inputs=inputs, outputs=outputs)

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        return self._typed(name, default, int)

    def real(self, name: str, default: float) -> float:
        """A float attribute."""
        return self._typed(name, default, float)

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        return self._typed(name, default, str)

    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """A list-of-integers attribute."""
        value = self._typed(name, default, tuple)
        if not all(isinstance(v, int) for v in value):
            raise ModelError(f"node {self.name!r}: attribute {name} must be a list of integers, not {value!r}")
        return value

    def _typed(self, name: str, default: Any, kind: type) -> Any:
        value = self.attributes.get(name, default)
        if not isinstance(value, kind):
            raise ModelError(f"node {self.name!r}: attribute {name} must be {kind.__name__}, not {value!r}")
        return value


@dataclass(frozen=True, eq=False)
class Model:
    """A checked graph in topological order with inferred shapes, without local functions and unused domains."""

    name: str
    nodes: tuple[OnnxNode, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Constant]
    types: Mapping[str, ValueType]
    opsets: Mapping[str, int]
    source: str = ""
    """SHA-256 of the file's content, external data included."""
    dims: Mapping[str, int] = field(default_factory=dict)
    """Sizes chosen for dimensions that are open in the file."""
    shifted: frozenset[str] = frozenset()
    """Values that are int8 in the file and uint8, larger by 128, in this model."""
    tflite: TfliteSource | None = None
    """The TFLite file, if the model was converted from one."""

    @cached_property
    def producers(self) -> Mapping[str, OnnxNode]:
        """The node that produces each value."""
        return {out: n for n in self.nodes for out in n.outputs if out}

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of each node in graph order, by name."""
        return {n.name: k for k, n in enumerate(self.nodes)}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[OnnxNode, ...]]:
        """The nodes that read each value, in graph order, each listed once."""
        readers: dict[str, list[OnnxNode]] = {}
        for n in self.nodes:
            for name in dict.fromkeys(n.reads):
                readers.setdefault(name, []).append(n)
        return {name: tuple(nodes) for name, nodes in readers.items()}

    @property
    def opset(self) -> int:
        """Version of the standard operator set."""
        return self.opsets[STANDARD]

    def users(self, value: str) -> tuple[OnnxNode, ...]:
        """The nodes that read `value`."""
        return self.consumers.get(value, ())

    def constant(self, value: str) -> Array | None:
        """The array of the constant `value`, or None if it is no constant."""
        constant = self.constants.get(value)
        return None if constant is None else constant.array

    def shape(self, value: str) -> tuple[int, ...] | None:
        """The static shape of `value`, or None if unknown."""
        if value in self.constants:
            return tuple(self.constants[value].array.shape)
        known = self.types.get(value)
        return None if known is None else known.shape

    def dtype(self, value: str) -> str:
        """Element type of `value`, empty if unknown."""
        if value in self.constants:
            return self.constants[value].dtype
        known = self.types.get(value)
        return "" if known is None else known.dtype

    def with_nodes(
        self,
        nodes: Iterable[OnnxNode],
        *,
        constants: Mapping[str, Constant] | None = None,
        types: Mapping[str, ValueType] | None = None,
    ) -> Model:
        """Copy the model with other nodes and additional constants and types."""
        return replace(
            self,
            nodes=tuple(nodes),
            constants={**self.constants, **(constants or {})},
            types={**self.types, **(types or {})},
        )
