"""Shape inference for a `Model` whose nodes were rewritten."""

from __future__ import annotations

from dataclasses import replace

from intloom.compiler.importer.emit import to_proto
from intloom.compiler.importer.load import from_proto
from intloom.compiler.importer.model import Model


def infer(model: Model) -> Model:
    """The model with types and shapes for every value that standard operators make.

    Raises
    ------
    ModelError
        The rewritten model is not a valid ONNX model.
    """
    # Checked once already; a rewritten model may use what its old opset lacks (a scale per channel before opset 13).
    inferred = from_proto(to_proto(model), name=model.name, newest_opset=model.opset, check=False)
    return replace(model, types={**model.types, **inferred.types})
