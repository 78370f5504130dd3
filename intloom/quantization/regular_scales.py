"""Scales for which affine constants reproduce the quantized sums and products of onnxruntime.

onnxruntime adds floats, which round a few sums next to a tie to either side. Whether three scales have such sums
depends on their last bits, and these on the processor that calibrates. The compiler corrects single pairs of bytes by
tables, at several times the cost of the sum, or leaves the operator to the host if they are too many. Instead, the
scale of the result is made larger, by at most 0.3 %, until there are none. A larger scale cuts no value off.
"""

import logging

import numpy as np
import onnx
from onnx import numpy_helper

from intloom.common.errors import IntloomError
from intloom.compiler.frontend import irregular_scales
from intloom.compiler.importer import load_model
from intloom.quantization.ranges import Overrides

_log = logging.getLogger(__name__)
_SUFFIX = "_scale"
FACTORS = tuple(1.0 + step / 4096 for step in range(1, 13))
"""Tried one after the other. Few sums are irregular, so that the first factor mostly serves."""


def moved_scales(first: onnx.ModelProto, made: onnx.ModelProto, factor: float) -> Overrides:
    """The scales with which `made` has irregular results, as in `first` but larger by a factor."""
    constants = {tensor.name: tensor for tensor in first.graph.initializer}
    moved: Overrides = {}
    for name in _irregular(made):
        tensor = name.removesuffix(_SUFFIX)
        scale, zero_point = constants.get(name), constants.get(f"{tensor}_zero_point")
        if scale is not None and zero_point is not None:
            larger = np.float32(numpy_helper.to_array(scale) * factor)
            moved[tensor] = [{"scale": np.array(larger), "zero_point": numpy_helper.to_array(zero_point)}]
    return moved


def _irregular(made: onnx.ModelProto) -> tuple[str, ...]:
    try:
        return irregular_scales(load_model(made))
    except IntloomError as error:
        # The compiler reports it to those who compile the model.
        _log.debug("the quantized model cannot be folded: %s", error)
        return ()
