"""Check of the sizes of convolutions, which ONNX's checker and shape inference leave open."""

from collections.abc import Mapping

from intloom.common.errors import ModelError
from intloom.compiler.importer.model import STANDARD, Model, OnnxNode

_WEIGHTS_AND_BIAS: Mapping[str, tuple[int, int | None]] = {
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "ConvInteger": (1, None),
    "QLinearConv": (3, 8),
}


def check_convolutions(model: Model) -> None:
    """Check channels, groups and bias of every convolution of known sizes.

    Raises
    ------
    ModelError
        A size contradicts another one.
    """
    for node in model.nodes:
        if node.op in _WEIGHTS_AND_BIAS and node.domain == STANDARD:
            _check(model, node, *_WEIGHTS_AND_BIAS[node.op])


def _check(model: Model, node: OnnxNode, weights_at: int, bias_at: int | None) -> None:
    mode = node.text("auto_pad", "NOTSET")
    if mode != "NOTSET" and "pads" in node.attributes:
        raise ModelError(f"node {node.name!r}: pads and auto_pad {mode} exclude each other: remove one of them")
    x, w = model.shape(node.input(0)), model.shape(node.input(weights_at))
    group = node.integer("group", 1)
    if x is None or w is None or len(x) < 2 or len(w) < 2 or group < 1:
        return
    transposed = node.op == "ConvTranspose"
    taken, made = (w[0], w[1] * group) if transposed else (w[1] * group, w[0])
    if taken != x[1] or not made or made % group:
        raise ModelError(
            f"node {node.name!r}: weights {w} in {group} groups must take {x[1]} channels, not {taken}, and return a "
            f"multiple of {group} channels, not {made}: correct the model"
        )
    bias = None if bias_at is None or not node.input(bias_at) else model.shape(node.input(bias_at))
    if bias is not None and bias != (made,):
        raise ModelError(f"node {node.name!r}: its bias must have shape {(made,)}, not {bias}: correct the model")
