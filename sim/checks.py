"""The result of comparing one tensor with a reference, and the first difference of a run."""

from dataclasses import asdict, dataclass
from typing import Any

GOLDEN = "golden"
ONNXRUNTIME = "onnxruntime"
LITERT = "LiteRT"
TFLITE_MICRO = "the kernels of TFLite Micro"


@dataclass(frozen=True)
class Check:
    """One tensor against one reference."""

    tensor: str
    layer: str
    """The layer that produces the tensor; empty for a tensor that no layer produces."""
    against: str
    bytes: int
    mismatches: int
    first: str = ""
    """Position of the first difference, and the two values."""
    coordinate: tuple[int, ...] = ()
    """Index of the first difference in the tensor; empty if there is none."""
    expected: int | None = None
    got: int | None = None

    def __str__(self) -> str:
        count = f"{self.mismatches} of {self.bytes} values"
        return f"tensor {self.tensor!r} differs from {self.against} in {count}, {self.first}"


@dataclass(frozen=True)
class OutputDistance:
    """One output of the model, compared with the user's file in plain onnxruntime."""

    output: str
    values: int
    differing: int
    largest_steps: int | None
    """Largest difference in quantization steps; None where the host computes the output."""
    largest: float
    """Largest difference in real units."""


@dataclass(frozen=True)
class OriginalComparison:
    """Distance of a run from the user's file in its plain runtime. It is information and not the exact comparison."""

    outputs: tuple[OutputDistance, ...] = ()
    float_layers: tuple[str, ...] = ()
    """Nodes of the accelerator that onnxruntime computes in float."""
    error: str = ""
    """Why the runtime does not load the file; empty if it does."""
    runtime: str = ONNXRUNTIME
    defined_layers: tuple[str, ...] = ()
    """Operators of the accelerator whose results it defines by integers of its own, near the runtime's."""
    saturated: bool = False
    """Whether values differ and the runtime saturates sums of products on this processor."""

    @property
    def matches(self) -> bool:
        """Whether the runtime loads the file and no value differs."""
        return not self.error and not any(o.differing for o in self.outputs)


@dataclass(frozen=True, kw_only=True)
class FirstDivergence:
    """The first difference of a run: in program order where the write was located, else in order of the layers."""

    against: str
    """What the run differs from."""
    layer: str
    layer_index: int | None
    """Position of the layer in the program; None for a tensor that no layer produces."""
    node: str
    """The ONNX nodes that the layer was made from, separated by commas."""
    tensor: str
    """Empty if the program does not store the value."""
    coordinate: tuple[int, ...]
    expected: int | None
    """None if nothing should have been written."""
    got: int | None
    """None if nothing was written."""
    region: int = 0
    """The model's region; instruction and cycle count from the start of its program."""
    instruction: int | None = None
    text: str = ""
    """The instruction in assembly."""
    cycle: int | None = None
    """None if the backend counts no cycles, or if the write never came."""
    waves: str = ""
    """File with the waves around the cycle, if they were recorded."""
    description: str = ""
    """A located write for the terminal, in several lines; empty for a difference that a comparison found."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON, without the description."""
        return {name: value for name, value in asdict(self).items() if name != "description"}
