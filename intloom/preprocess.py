"""Preprocessing of a float model for quantization, with its result in the cache.

Constants are folded, batch normalization is folded into the convolutions, onnxslim or onnxruntime simplifies the
graph, and all shapes are inferred. A failure is an error: the original model is never used instead.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path

import onnx

from intloom.common.cache.store import Kind, cached_file, key_of
from intloom.common.errors import ModelError, UnsupportedError
from intloom.common.temporary_files import temporary_folder
from intloom.compiler.importer.control_flow import check_loops
from intloom.compiler.importer.dims import fix_dims
from intloom.compiler.importer.guarded_inference import guarded_inference
from intloom.compiler.importer.load import check_valid
from intloom.compiler.importer.old_opsets import converted
from intloom.compiler.refusals import Refusal
from intloom.models import content_hash, load_onnx

STEP = "preprocess"
_PIPELINES = "ai.onnx.ml"
"""The domain of pipelines of scikit-learn, for whose operators ONNX infers few types."""
_MOST_BYTES = (1 << 31) - 1


class Optimizer(StrEnum):
    """Library that simplifies the graph."""

    ONNXSLIM = "onnxslim"
    ONNXRUNTIME = "onnxruntime"
    NONE = "none"


@dataclass(frozen=True)
class Preprocessed:
    """A preprocessed model in the cache."""

    path: Path
    key: str
    hit: bool
    seconds: float
    """Duration of this call."""
    making_seconds: float
    """Duration of the preprocessing, in this call or when the cache entry was made."""
    nodes_before: int
    nodes_after: int

    @property
    def saved_seconds(self) -> float:
        """Time that the cache saved."""
        return max(0.0, self.making_seconds - self.seconds) if self.hit else 0.0


def preprocess(
    source: Path,
    optimizer: Optimizer = Optimizer.ONNXSLIM,
    cache: Path | None = None,
    *,
    dims: Mapping[str, int] | None = None,
) -> Preprocessed:
    """The preprocessed model of `source`, from the cache if possible; `cache` is another folder than the user's.

    `dims` sets the sizes of open dimensions.

    Raises
    ------
    FileFormatError, ModelError
        The model cannot be read, or violates the ONNX rules.
    UnsupportedError, UsageError
        A dimension has no size, or a size is given for a dimension that does not exist.
    DiskError
        The cache cannot be written.
    """
    started = time.perf_counter()
    model = load_onnx(source)
    nodes_before = len(model.graph.node)
    chosen = fix_dims(model.graph, dims or {})
    options = {"optimizer": str(optimizer), **{f"dim {name}": str(size) for name, size in sorted(chosen.items())}}
    key = key_of(STEP, content_hash(source), options, tool_versions())

    def make(folder: Path) -> Path:
        (folder / "model.onnx").write_bytes(_prepare(model, source, optimizer, sized=bool(chosen)))
        return folder / "model.onnx"

    detail = " ".join((STEP, *(f"{k}={v}" for k, v in options.items())))
    made = cached_file(Kind.MODEL, key, make, detail=detail, home=cache)
    after = len(onnx.load(made.path).graph.node)
    elapsed = time.perf_counter() - started
    return Preprocessed(made.path, key, made.cached, elapsed, made.seconds, nodes_before, after)


def tool_versions() -> dict[str, str]:
    """Versions of the libraries that affect preprocessed models; part of every cache key."""
    return {name: version(name) for name in ("intloom", "onnx", "onnxruntime", "onnxslim")}


def _prepare(model: onnx.ModelProto, source: Path, optimizer: Optimizer, *, sized: bool) -> bytes:
    """The preprocessed model; `sized`: open dimensions got sizes."""
    if model.ByteSize() > _MOST_BYTES:
        message = f"{source} holds {model.ByteSize()} bytes; models above 2 GiB are not supported"
        raise UnsupportedError(message, Refusal.SIZE.number)
    try:
        # First, because the libraries below infer shapes without the guard.
        check_loops(guarded_inference(model, check_type=False, strict=False))
        model = converted(model)
        _name_nodes(model.graph)
        check_valid(model)
        if optimizer is Optimizer.ONNXSLIM:
            model = _with_onnxslim(model)
        elif optimizer is Optimizer.ONNXRUNTIME:
            model = _with_onnxruntime(model)
        _flatten_biases(model.graph)
        inferred = guarded_inference(model, check_type=False)
        onnx.checker.check_model(inferred)
    except UnsupportedError:
        raise
    except Exception as error:
        # onnx, onnxslim and onnxruntime raise exceptions without a common base class.
        if pipeline := sorted({n.op_type for n in model.graph.node if n.domain == _PIPELINES}):
            raise UnsupportedError(
                f"{source}: the values of {', '.join(pipeline)} of {_PIPELINES} have no known types: "
                "export the network without the pipeline around it",
                Refusal.OPERATOR.number,
            ) from error
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if sized and "dimension" in reason:
            reason = f"its constants contradict the given sizes; export it with them ({reason})"
        raise ModelError(f"{source} cannot be preprocessed with {optimizer}: {reason}") from error
    return bytes(inferred.SerializeToString(deterministic=True))


def _flatten_biases(graph: onnx.GraphProto) -> None:
    """Give the bias of every Gemm one dimension, as onnxruntime's quantizer requires: [1, N] is broadcast."""
    wanted = {n.input[2] for n in graph.node if n.op_type == "Gemm" and not n.domain and len(n.input) > 2}
    wanted -= {v for n in graph.node for i, v in enumerate(n.input) if n.op_type != "Gemm" or i != 2}
    for tensor in graph.initializer:
        if tensor.name in wanted and list(tensor.dims[:-1]) == [1]:
            del tensor.dims[0]


def _name_nodes(graph: onnx.GraphProto) -> None:
    """Give every node a name of its own: the quantizer leaves nodes out by name, and all nodes with an equal name."""
    taken = {node.name for node in graph.node}
    seen = {""}
    for index, node in enumerate(graph.node):
        if node.name in seen:
            number = index
            while (name := f"{node.op_type}_{number}") in taken:
                number += len(graph.node)
            node.name = name
            taken.add(name)
        seen.add(node.name)


def _with_onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim

    slim: onnx.ModelProto = onnxslim.slim(model)
    return slim


def _with_onnxruntime(model: onnx.ModelProto) -> onnx.ModelProto:
    # Basic level only: the extended level writes operators that onnxruntime's quantizer does not support.
    return optimized(model, "ORT_ENABLE_BASIC")


def optimized(model: onnx.ModelProto, level: str) -> onnx.ModelProto:
    """The model after onnxruntime's optimizer at `level`, a member of its `GraphOptimizationLevel`."""
    import onnxruntime as ort

    from intloom.compiler.reference import avoid_abort

    with temporary_folder() as folder:
        target = folder / "optimized.onnx"
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = ort.GraphOptimizationLevel.__members__[level]
        options.optimized_model_filepath = str(target)
        data = model.SerializeToString()
        avoid_abort(data, options)
        ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        return onnx.load(target)
