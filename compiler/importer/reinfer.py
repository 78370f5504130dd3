"""Shape inference for a `Model` whose nodes were rewritten."""

from __future__ import annotations

from dataclasses import replace

from .emit import to_proto
from .load import from_proto
from .model import Model


def infer(model: Model) -> Model:
    """The model with types and shapes for every value that standard operators make.

    Raises
    ------
    ModelError
        The rewritten model is not a valid ONNX model.
    """
    inferred = from_proto(to_proto(model), name=model.name)
    return replace(model, types={**model.types, **inferred.types})
