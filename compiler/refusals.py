"""The closed list of reasons for which a model, or a part of it, does not run on the accelerator.

`docs/refusals.md` is generated from it, and the command line prints the number of the row.
"""

from enum import Enum

from intloom.common.errors import UnsupportedError


class UnsupportedPattern(UnsupportedError):
    """A lowering does not support a unit: the row of the list, the reason, and the remedy for the user."""

    def __init__(self, refusal: "Refusal", reason: str, remedy: str) -> None:
        super().__init__(reason, refusal.number)
        self.refusal, self.reason, self.remedy = refusal, reason, remedy


class Refusal(Enum):
    """A row of the list: its number, what was found, and what to do in general. Calling it makes an error."""

    FLOAT_MODEL = 1, "the model is float", "`intloom quantize MODEL.onnx -o Q.onnx`"
    DYNAMIC = 2, "its scales are known only when it runs", "`intloom quantize MODEL.onnx --calibration DIR -o Q.onnx`"
    OPEN_SIZE = 3, "a size is open or unknown", "`--dim NAME=N` or `--shape INPUT=1,3,H,W`, or export with fixed sizes"
    BATCH = 4, "the images of a batch depend on each other", "export with batch size 1"
    OPSET = 5, "the opset is older or newer than those supported", "convert the model with `onnx.version_converter`"
    CONTROL_FLOW = 6, "a branch decides a shape, a loop is long, or a file has several graphs", "export it without"
    NOT_QUANTIZED = 7, "a QuantizeLinear, DequantizeLinear pair is missing", "quantize after every operator"
    TYPE = 8, "activations are not 8 bits wide, or have several scales", "quantize activations per tensor to 8 bits"
    WEIGHTS = 9, "weights are not 8-bit constants with a scale per tensor or output channel", "quantize them so"
    BIAS = 10, "a bias is not constant at input scale times weight scale", "leave it float, or store it as int32 so"
    NO_INTEGERS = 11, "no integer constants reproduce what float arithmetic rounds", "change a scale slightly"
    RANGE = 12, "sums, factors or offsets may exceed their number of bits", "smaller constants, or fewer inputs"
    OPERATOR = 13, "the operator has no integer lowering", "replace it, or leave it to the host"
    RECURRENT = 14, "a recurrent cell keeps a float state", "leave it to the host, or use convolutions over time"
    NORMALIZATION = 15, "axes, size or scale of a normalization or Softmax", "the last axis; Softmax at scale 1/256"
    HARDWARE = 16, "the chosen hardware lacks the unit", "another preset, or `--set` of the field in the message"
    BROADCAST = 17, "operands are broadcast over other axes", "expand them in the model"
    ORDER = 18, "a Reshape, Transpose or Concat scatters rows or channels", "move whole rows or channels"
    DIMENSIONS = 19, "more than two spatial dimensions", "fold a dimension into channels"
    WINDOW = 20, "dilation, padding, stride or size of a window", "the values in the message"
    RESIZE = 21, "an interpolation, or other than whole factors", "mode nearest, or `quantize` the float model"
    SELECTION = 22, "axes, steps or mode of a Slice or Pad", "whole channels, positive steps, constant padding"
    CONSTANT = 23, "a bound, pad or operand is computed", "fold constants: `intloom preprocess`"
    CUSTOM = 24, "a custom operation is not registered completely", "the message says what is missing"
    SIZE = 25, "a tensor or field is larger than an instruction or memory holds", "smaller images, or split the node"
    INVALID = 26, "shapes of the model contradict each other or are empty", "correct the model"
    HOST = 27, "a value that the host computes is read", "follow the row of the node that computes it"
    SMALL = 28, "too few multiplications for the bytes that cross after a host part", "quantize what is before it"
    QONNX = 29, "nodes of QONNX or MCT quantize, not QuantizeLinear", "`qonnx-convert --output-style qcdq MODEL.onnx`"

    def __init__(self, number: int, found: str, remedy: str) -> None:
        self.number, self.found, self.remedy = number, found, remedy

    def __call__(self, reason: str, remedy: str) -> UnsupportedPattern:
        """The error with this row."""
        return UnsupportedPattern(self, reason, remedy)
