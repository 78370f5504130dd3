"""Conversion of models of old opsets and IR versions by ONNX's converter."""

import onnx
import onnx.version_converter

CONVERTED_OPSET = 13
"""Opset of QuantizeLinear with a scale per channel; older models are converted to it."""
_LEAST_IR = 7
"""IR version that came with that opset."""


def converted(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in opset `CONVERTED_OPSET` or newer, and in a newer IR version; it may change in place.

    Before IR version 4, every initializer had to be an input as well.
    """
    if model.ir_version < _LEAST_IR:
        model.ir_version = _LEAST_IR
        stored = {t.name for t in model.graph.initializer}
        kept = [v for v in model.graph.input if v.name not in stored]
        del model.graph.input[:]
        model.graph.input.extend(kept)
    version = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=CONVERTED_OPSET)
    if version >= CONVERTED_OPSET:
        return model
    newer: onnx.ModelProto = onnx.version_converter.convert_version(model, CONVERTED_OPSET)
    return newer
