"""Forms that no instruction expresses: each stays with the host, whose reason names it; the results are the file's."""

from collections.abc import Callable

import numpy as np
import pytest

from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from tests.support.onnx_maker import OnnxMaker, Value

Made = tuple[str, tuple[int, ...]]


def transposed(
    m: OnnxMaker, x: Value, *, group: int = 1, kernel: int = 2, per_channel: bool = False, **given: object
) -> Made:
    shape = (x.shape[1], 4, kernel, kernel)
    whole = [m.constant(np.ones(shape, np.int8)), m.constant(np.float32(0.01)), m.constant(np.int8(0))]
    weight = m.weights(shape, 1)[0] if per_channel else m.node("DequantizeLinear", whole)[0]
    size = given.pop("size", (12, 12))
    (value,) = m.node("ConvTranspose", [x.name, weight], group=group, **given)
    return value, (1, 4 * group, *size)


def node(
    op: str, shape: tuple[int, ...], *constants: np.ndarray, **attributes: object
) -> Callable[[OnnxMaker, Value], Made]:
    def make(m: OnnxMaker, x: Value) -> Made:
        (value,) = m.node(op, [x.name, *(m.constant(c) for c in constants)], **attributes)
        return value, shape

    return make


REFUSED: dict[str, tuple[Callable[[OnnxMaker, Value], Made], str]] = {
    "groups with scales": (
        lambda m, x: transposed(m, x, group=2, per_channel=True, strides=[2, 2]), "groups and a scale per channel",
    ),
    "long kernel": (lambda m, x: transposed(m, x, kernel=16, size=(21, 21)), "its kernel is (16, 16)"),
    "implicit padding": (
        lambda m, x: transposed(m, x, auto_pad="SAME_UPPER", strides=[2, 2]), "its padding is implicit",
    ),
    "output shape": (
        lambda m, x: transposed(m, x, output_shape=[11, 11], strides=[2, 2], size=(11, 11)), "its padding is implicit",
    ),
    "reduction": (
        node("Resize", (1, 8, 3, 3), np.zeros(0, np.float32), np.array([1, 1, 0.5, 0.5], np.float32), mode="nearest"),
        "it resizes (1, 8, 6, 6) to (1, 8, 3, 3)",
    ),
    "prime factor": (
        node("Resize", (1, 8, 102, 6), np.zeros(0, np.float32), np.array([1, 1, 17, 1], np.float32), mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        "it repeats pixels 17 times",
    ),
    "cubic": (
        node("Resize", (1, 8, 12, 12), np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32), mode="cubic"),
        "it interpolates (cubic)",
    ),
    "mirrored at the border": (
        node("Pad", (1, 8, 8, 6), np.array([0, 0, 1, 0, 0, 0, 1, 0]), mode="wrap"), "it pads in mode wrap",
    ),
    "channels of itself": (
        node("Pad", (1, 10, 6, 6), np.array([0, 1, 0, 0, 0, 1, 0, 0]), mode="edge"), "pads channels otherwise",
    ),
    "dilated window": (
        node("MaxPool", (1, 8, 4, 4), kernel_shape=[2, 2], dilations=[2, 2]), "its window is dilated",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_the_reason_names_the_form(name: str, rng) -> None:
    make, reason = REFUSED[name]
    m = OnnxMaker(rng, opset=19)
    value, shape = make(m, m.conv(m.image(3, 6, 6), 8))
    m.output(m.conv(m.pair(value, shape, 0.05), 4))
    model = m.model()
    op = next(n.op_type for n in model.graph.node if value in n.output)
    *_, found = (a for a in fold_model(from_proto(model, name="m")).assignments if a.op == op)
    assert found.target is Target.HOST
    assert found.row
    assert found.remedy
    assert reason in found.reason
