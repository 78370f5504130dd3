"""Shape inference of a `Model` after a pass rewrote its nodes."""

from dataclasses import replace

from intloom.compiler.importer.emit import to_proto
from intloom.compiler.importer.load import Origin, from_proto
from intloom.compiler.importer.model import TFLITE, Model


def infer(model: Model) -> Model:
    """Infer types and shapes of all values that standard operators produce.

    Raises
    ------
    ModelError
        The rewritten model, or the TFLite file that it was converted from, is not valid.
    """
    form = "TFLite file" if TFLITE in model.opsets else "ONNX model"
    origin = Origin(form=form, newest_opset=model.opset, checked=True)
    inferred = from_proto(to_proto(model), name=model.name, origin=origin)
    known = {name: kind for name, kind in inferred.types.items() if kind.dtype and kind.shape is not None}
    return replace(model, types={**inferred.types, **model.types, **known})
