"""Window geometry of convolutions and pools: kernel, strides, dilations and explicit padding."""

from dataclasses import dataclass, replace

from intloom.common.errors import ModelError
from intloom.compiler.importer import OnnxNode
from intloom.compiler.ir import Tensor
from intloom.compiler.ir.node import Pads, Pair
from intloom.compiler.refusals import Refusal


@dataclass(frozen=True)
class Window:
    """Geometry of a sliding window over (height, width)."""

    kernel: Pair
    strides: Pair
    dilations: Pair
    pads: Pads

    def output(self, size: Pair) -> Pair:
        """Rows and columns of the result for an input of this size."""
        spans = [self.dilations[i] * (self.kernel[i] - 1) + 1 for i in (0, 1)]
        rows = (size[0] + self.pads[0] + self.pads[2] - spans[0]) // self.strides[0] + 1
        columns = (size[1] + self.pads[1] + self.pads[3] - spans[1]) // self.strides[1] + 1
        return rows, columns

    def inside(self, axis: int, length: int) -> list[tuple[int, int]]:
        """The pixels of `length` along an axis that each window without dilation has, as first and stop."""
        count = (length + self.pads[axis] + self.pads[axis + 2] - self.kernel[axis]) // self.strides[axis] + 1
        starts = [number * self.strides[axis] - self.pads[axis] for number in range(count)]
        return [(max(0, at), min(length, at + self.kernel[axis])) for at in starts]


def read_window(node: OnnxNode, x: Tensor, kernel: Pair | None = None) -> Window:
    """Read the geometry of a node over tensor `x`; `kernel` overrides the attribute where the weights define it."""
    if kernel is None:
        kernel = read_pair(node, "kernel_shape", 0)
    strides, dilations = read_pair(node, "strides", 1), read_pair(node, "dilations", 1)
    if min(*kernel, *strides, *dilations) < 1:
        raise ModelError(f"node {node.name!r}: kernel, strides and dilations must be positive: correct the model")
    sizes = (x.height, x.width)
    window = Window(kernel, strides, dilations, _pads(node, sizes, Window(kernel, strides, dilations, (0, 0, 0, 0))))
    if node.integer("ceil_mode", 0):
        window = _apply_ceil_mode(window, sizes)
    if min(window.output(sizes)) < 1:
        raise ModelError(f"node {node.name!r}: its window of {kernel} must fit an input of {sizes}: correct the model")
    return window


def read_pool(node: OnnxNode, x: Tensor, kernel: Pair | None = None) -> Window:
    """The same of a pool; along an axis that the window covers, the stride is 1, so that it fits an instruction."""
    window = read_window(node, x, kernel)
    if window.dilations != (1, 1):
        raise Refusal.WINDOW("its window is dilated", "use dilations of 1")
    unit = replace(window, strides=(1, 1)).output((x.height, x.width))
    strides = (1 if unit[0] == 1 else window.strides[0], 1 if unit[1] == 1 else window.strides[1])
    return replace(window, strides=strides)


def read_pair(node: OnnxNode, name: str, default: int) -> Pair:
    """An attribute with a value for each spatial dimension."""
    values = node.integers(name, (default, default))
    if len(values) == 1:
        # A sequence is an image of height 1.
        return 1, values[0]
    if len(values) != 2:
        raise Refusal.DIMENSIONS(
            f"{node.name!r} works over {len(values)} dimensions", "use one or two spatial dimensions"
        )
    return values[0], values[1]


def _pads(node: OnnxNode, sizes: Pair, geometry: Window) -> Pads:
    # ONNX: `pads` cannot be used together with an `auto_pad` other than NOTSET, so it is read in that mode only.
    mode = node.text("auto_pad", "NOTSET")
    if mode == "VALID":
        return 0, 0, 0, 0
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        return _same_pads(sizes, geometry, upper=mode == "SAME_UPPER")
    if mode != "NOTSET":
        raise ModelError(f"node {node.name!r}: auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not {mode!r}")
    # ONNX lists all begins, then all ends: top, left, bottom, right.
    pads = node.integers("pads", (0, 0, 0, 0))
    if len(pads) == 2:
        pads = (0, pads[0], 0, pads[1])
    if len(pads) != 4:
        raise ModelError(f"node {node.name!r}: pads must have 2 or 4 values, not {pads}")
    if min(pads) < 0:
        raise Refusal.WINDOW(f"{node.name!r} has negative padding {pads}", "crop with a Slice")
    return pads[0], pads[1], pads[2], pads[3]


def _same_pads(sizes: Pair, geometry: Window, *, upper: bool) -> Pads:
    """Padding for ceil(size / stride) windows; an odd pixel is at the end, or at the start for SAME_LOWER."""
    first, last = [], []
    for size, kernel, stride, dilation in zip(
        sizes, geometry.kernel, geometry.strides, geometry.dilations, strict=True
    ):
        # SAME pads to ceil(size / stride) outputs; a kernel smaller than its stride would need a negative padding.
        total = max(0, (-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size)
        first.append(total // 2 if upper else total - total // 2)
        last.append(total - first[-1])
    return first[0], first[1], last[0], last[1]


def _apply_ceil_mode(geometry: Window, sizes: Pair) -> Window:
    """Apply ceil_mode: pad the end so that the last partial window counts, unless it starts inside the padding."""
    ends = []
    for i in (0, 1):
        span = geometry.dilations[i] * (geometry.kernel[i] - 1) + 1
        free = sizes[i] + geometry.pads[i] + geometry.pads[i + 2] - span
        steps = -(-free // geometry.strides[i])
        # MaxPool and AveragePool: a window that would start in the end padding is ignored.
        if steps * geometry.strides[i] >= sizes[i] + geometry.pads[i]:
            steps -= 1
        ends.append(geometry.pads[i + 2] + max(0, steps * geometry.strides[i] - free))
    pads = (geometry.pads[0], geometry.pads[1], ends[0], ends[1])
    return Window(geometry.kernel, geometry.strides, geometry.dilations, pads)
