"""Preparing a float model for quantization, as a step of its own with its result in the cache.

Constants are folded, batch normalization goes into the convolutions, the graph is cleaned by onnxslim or onnxruntime,
and all shapes are inferred. A failure raises; the unprepared model is never passed on in its place.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path

import onnx

from intloom.cache import Cache, Recipe
from intloom.common.errors import ModelError, UnsupportedError
from intloom.common.temporary_files import temporary_folder
from intloom.models import content_hash, load_onnx

STEP = "preprocess"
_MOST_BYTES = (1 << 31) - 1


class Optimizer(StrEnum):
    """Which library cleans the graph."""

    ONNXSLIM = "onnxslim"
    ONNXRUNTIME = "onnxruntime"
    NONE = "none"


@dataclass(frozen=True)
class Preprocessed:
    """A prepared model in the cache."""

    path: Path
    key: str
    hit: bool
    seconds: float
    """Time this call took."""
    making_seconds: float
    """Time the preparation itself took, now or when the entry was made."""
    nodes_before: int
    nodes_after: int

    @property
    def saved_seconds(self) -> float:
        """What the cache saved."""
        return max(0.0, self.making_seconds - self.seconds) if self.hit else 0.0


def preprocess(source: Path, optimizer: Optimizer = Optimizer.ONNXSLIM, cache: Cache | None = None) -> Preprocessed:
    """The prepared form of the model in `source`, from the cache where it has been made before.

    Raises
    ------
    FileFormatError, ModelError
        The model cannot be read, or breaks the rules of ONNX.
    DiskError
        The cache cannot be written.
    """
    started = time.perf_counter()
    cache = cache or Cache()
    model = load_onnx(source)
    recipe = Recipe(content_hash(source), STEP, {"optimizer": str(optimizer)}, tool_versions())
    found = cache.get(recipe)
    if found is None:
        data = _prepare(model, source, optimizer)
        making = time.perf_counter() - started
        path = cache.put(recipe, data, making)
    else:
        path, making = found[0], found[1].seconds
    after = len(onnx.load(path).graph.node)
    elapsed = time.perf_counter() - started
    return Preprocessed(path, recipe.key, found is not None, elapsed, making, len(model.graph.node), after)


def tool_versions() -> dict[str, str]:
    """Versions of the libraries that shape prepared models; part of every cache key."""
    return {name: version(name) for name in ("intloom", "onnx", "onnxruntime", "onnxslim")}


def _prepare(model: onnx.ModelProto, source: Path, optimizer: Optimizer) -> bytes:
    if model.ByteSize() > _MOST_BYTES:
        raise UnsupportedError(
            f"{source} holds {model.ByteSize()} bytes of weights: models above 2 GiB are not supported"
        )
    try:
        onnx.checker.check_model(model)
        if optimizer is Optimizer.ONNXSLIM:
            model = _with_onnxslim(model)
        elif optimizer is Optimizer.ONNXRUNTIME:
            model = _with_onnxruntime(model)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        onnx.checker.check_model(inferred)
    except Exception as error:
        # The libraries raise what they like; whatever it was, the model could not be prepared.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"{source} cannot be preprocessed with {optimizer}: {reason}") from error
    return bytes(inferred.SerializeToString(deterministic=True))


def _with_onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim

    slim: onnx.ModelProto = onnxslim.slim(model)
    return slim


def _with_onnxruntime(model: onnx.ModelProto) -> onnx.ModelProto:
    # Basic only: the extended level writes operators that no quantizer knows.
    return optimized(model, "ORT_ENABLE_BASIC")


def optimized(model: onnx.ModelProto, level: str) -> onnx.ModelProto:
    """The model as onnxruntime's optimizer leaves it at `level`, a member of its `GraphOptimizationLevel`."""
    import onnxruntime as ort

    with temporary_folder() as folder:
        target = folder / "optimized.onnx"
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = ort.GraphOptimizationLevel.__members__[level]
        options.optimized_model_filepath = str(target)
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(target)
