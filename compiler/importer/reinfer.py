"""Shape inference of a `Model` after a pass rewrote its nodes."""

from dataclasses import replace

from intloom.compiler.importer.emit import to_proto
from intloom.compiler.importer.load import from_proto
from intloom.compiler.importer.model import TFLITE, Model


def infer(model: Model) -> Model:
    """Infer types and shapes of all values that standard operators produce.

    Raises
    ------
    ModelError
        The rewritten model, or the TFLite file that it was converted from, is not valid.
    """
    # Not checked again: a rewritten model may use what its opset does not define (a scale per channel before opset 13).
    form = "TFLite file" if TFLITE in model.opsets else "ONNX model"
    inferred = from_proto(to_proto(model), name=model.name, newest_opset=model.opset, check=False, form=form)
    known = {name: kind for name, kind in inferred.types.items() if kind.dtype and kind.shape is not None}
    return replace(model, types={**inferred.types, **model.types, **known})
