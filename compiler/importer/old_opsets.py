"""Conversion of models of old opsets and IR versions by ONNX's converter."""

import onnx
import onnx.version_converter

from intloom.compiler.importer.model import MICROSOFT

CONVERTED_OPSET = 13
"""Opset of QuantizeLinear with a scale per channel; older models are converted to it."""
LAYER_NORM_OPSET = 17
"""Opset of LayerNormalization; onnxruntime's optimizer writes it into ONNX's domain in files of older opsets, too."""
_LEAST_IR = 7
"""IR version that came with that opset."""


def modernize_ir(model: onnx.ModelProto) -> None:
    """Give the model a newer IR version in place: before version 4, every initializer had to be an input as well."""
    if model.ir_version < _LEAST_IR:
        model.ir_version = _LEAST_IR
        stored = {t.name for t in model.graph.initializer}
        kept = [v for v in model.graph.input if v.name not in stored]
        del model.graph.input[:]
        model.graph.input.extend(kept)


def name_resize_operands(model: onnx.ModelProto) -> None:
    """Give every Resize before opset 13 an empty `roi` and `scales` in place, where exporters leave out their names."""
    old = any(o.version < CONVERTED_OPSET and o.domain in ("", "ai.onnx") for o in model.opset_import)
    for node in [n for n in model.graph.node if old and n.op_type == "Resize" and n.domain in ("", "ai.onnx")]:
        for at in [i for i, value in enumerate(node.input[1:3], 1) if not value]:
            node.input[at] = f"{node.output[0]}/operand{at}"
            model.graph.initializer.append(onnx.helper.make_tensor(node.input[at], onnx.TensorProto.FLOAT, [0], []))


def converted(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in opset `CONVERTED_OPSET` or newer, and in a newer IR version; it may change in place."""
    modernize_ir(model)
    version = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=CONVERTED_OPSET)
    norms = mark_layer_norms(model)
    wanted = LAYER_NORM_OPSET if norms else CONVERTED_OPSET
    if version >= wanted:
        return model
    newer: onnx.ModelProto = onnx.version_converter.convert_version(model, wanted)
    for node in newer.graph.node:
        if norms and node.op_type == "LayerNormalization":
            node.domain = ""
    return newer


def mark_layer_norms(model: onnx.ModelProto) -> bool:
    """Move each LayerNormalization that its opset lacks to com.microsoft, where ONNX's converter leaves it alone."""
    version = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=LAYER_NORM_OPSET)
    norms = [n for n in model.graph.node if n.op_type == "LayerNormalization"] if version < LAYER_NORM_OPSET else []
    for node in norms:
        node.domain = MICROSOFT
    if norms and all(o.domain != MICROSOFT for o in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(MICROSOFT, 1))
    return bool(norms)
