"""Post-training static quantization: preprocess, calibrate, quantize, measure noise."""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray

from intloom.common.errors import ModelError, UnsupportedError, UsageError
from intloom.common.temporary_files import temporary_folder
from intloom.compiler.fold.patterns.unsupported import RECURRENT
from intloom.compiler.importer.subgraphs import all_graphs, graphs_of
from intloom.compiler.partition.assignment import host_operators
from intloom.compiler.refusals import Refusal
from intloom.files import atomic_path, check_output
from intloom.flow.model_interface import read_metadata
from intloom.models import is_quantized, load_onnx, operators
from intloom.preparation import PLAIN, Preparation, stored_preparation
from intloom.preprocess import Optimizer, Preprocessed, preprocess
from intloom.quantization.bias_correction import correct_biases
from intloom.quantization.choice import CANDIDATES, agreement, hold_back
from intloom.quantization.dynamic import float_model, is_dynamic
from intloom.quantization.elementwise import inner_nodes, normalization_nodes
from intloom.quantization.equalization import equalize
from intloom.quantization.halves import has_halves, in_float32
from intloom.quantization.interpolation import without_linear_resize
from intloom.quantization.masks import bound_masks, mask_nodes, unseen_masks
from intloom.quantization.options import (
    DEFAULT_PERCENTILE,
    ActivationType,
    Calibration,
    Form,
    Head,
    QuantizeOptions,
    WeightScales,
)
from intloom.quantization.outlier_channels import copy_outlier_channels
from intloom.quantization.ranges import Overrides, as_overrides, best_ranges
from intloom.quantization.regular_scales import FACTORS, moved_scales
from intloom.quantization.samples import Samples, input_specs, load_samples, warn_of_bytes
from intloom.quantization.shared_biases import rename_shared_biases
from intloom.quantization.snr import TensorNoise, measure_noise
from intloom.quantization.tail import WEIGHTED, float_tail

_log = logging.getLogger(__name__)
_LAYERS = WEIGHTED | RECURRENT
Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, steps done and total steps."""


@dataclass(frozen=True)
class Quantized:
    """Result of a quantization."""

    path: Path
    options: QuantizeOptions
    preprocessed: Preprocessed
    samples: int
    synthetic: bool
    excluded: tuple[str, ...]
    """Nodes that stay float."""
    noise: tuple[TensorNoise, ...]
    seconds: float
    agreement: Mapping[Calibration, float] = field(default_factory=dict)
    """By calibration method that was tried, from 0 to 1: see `choice.agreement`. Empty if there was no choice."""

    def __repr__(self) -> str:
        worst = min((n.snr_db for n in self.noise), default=float("nan"))
        return (
            f"<Quantized {str(self.path)!r}, {self.options.form}, {self.samples} samples, "
            f"{len(self.excluded)} nodes excluded, {len(self.noise)} tensors, lowest SNR {worst:.1f} dB>"
        )


def quantize(
    source: str | Path,
    target: str | Path,
    calibration: str | Path | None = None,
    options: QuantizeOptions | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    optimizer: Optimizer = Optimizer.ONNXSLIM,
    cache: Path | None = None,
    progress: Progress | None = None,
    preparation: Preparation | None = None,
) -> Quantized:
    """Quantize the float model in `source` and write the result to `target`.

    Parameters
    ----------
    source, target
        ONNX files.
    calibration
        A folder of images, or a .npy or .npz file; None selects synthetic images and logs a warning.
    options
        See `QuantizeOptions`.
    dims
        Sizes of open dimensions by name; see `fix_dims`.
    optimizer, cache
        Library and cache folder for preprocessing.
    progress
        Called after every step.
    preparation
        How pictures become inputs, which the quantized model stores; None is what `source` stores, else its default.

    Raises
    ------
    UsageError
        A node to exclude does not exist, the samples do not fit the model's input, or the model is already quantized.
        Dynamically quantized models are accepted.
    ModelError
        onnxruntime rejects the model.
    UnsupportedError
        It has no operator that can be quantized.
    """
    started = time.perf_counter()
    source, target = Path(source), Path(target)
    check_output(target, source)
    kinds = set(operators(load_onnx(source, external_data=False)))
    if is_quantized(kinds) and not is_dynamic(kinds):
        raise UsageError(f"{source} is already quantized; compile it directly, or quantize its float original")
    options = options or QuantizeOptions()
    report = progress or (lambda _stage, _done, _all: None)
    report("preprocess", 0, 1)
    with temporary_folder() as folder:
        original, options = _float_source(source, folder, options, dynamic=is_dynamic(kinds))
        prepared = preprocess(original, optimizer, cache, dims=dims)
    model = load_onnx(prepared.path)
    _check_operators(model.graph)
    if preparation is None:
        preparation = stored_preparation(read_metadata(source).custom_metadata_map) or PLAIN
    samples = _samples(model, calibration, options, preparation)
    excluded = _excluded(model.graph, options)
    with atomic_path(target) as temporary, temporary_folder() as folder:
        seen = samples if calibration is not None else None
        floats = _rewritten(model, prepared.path, folder / source.name, options, seen)
        if options.calibration is Calibration.AUTO and calibration is None:
            # Synthetic images do not show which values of real ones are outliers.
            options = replace(options, calibration=Calibration.MINMAX)
        without_pairs = (*excluded, *inner_nodes(model.graph), *normalization_nodes(model), *mask_nodes(model.graph))
        quantizer = _Quantizer(floats, without_pairs, report)
        made, options, agreed = quantizer.calibrated(folder, samples, options)
        if options.correct_bias:
            correct_biases(model, made, samples, lambda done, total: report("biases", done, total))
        preparation.store(made)
        onnx.save(made, temporary)
        if not is_quantized(operators(made)):
            listed = ", ".join(sorted(set(operators(model))))
            raise UnsupportedError(
                f"{source} has no operator that onnxruntime's quantizer supports, only {listed}",
                Refusal.OPERATOR.number,
            )
        report("quantize", 1, 1)
        report("noise", 0, 1)
        noise = measure_noise(model, made, samples[0])
    report("noise", 1, 1)
    elapsed = time.perf_counter() - started
    return Quantized(target, options, prepared, len(samples), calibration is None, excluded, noise, elapsed, agreed)


def _rewritten(
    model: onnx.ModelProto, path: Path, target: Path, options: QuantizeOptions, samples: Samples | None
) -> Path:
    """Change the float model so that it quantizes better; where it is stored then. Samples are those of a user."""
    changed = without_linear_resize(model)
    changed |= bound_masks(model)
    changed |= rename_shared_biases(model)
    if samples is not None and unseen_masks(model, samples):
        _log.warning(
            "no calibration sample has padding: padding will not be hidden; add samples with padding as in use"
        )
    if samples is not None:
        changed |= copy_outlier_channels(model, samples)
    if options.equalize:
        equalize(model)
    if not changed and not options.equalize:
        return path
    onnx.save(model, target)
    return target


def _samples(
    model: onnx.ModelProto, calibration: str | Path | None, options: QuantizeOptions, preparation: Preparation
) -> Samples:
    source = None if calibration is None else Path(calibration)
    samples = load_samples(input_specs(model), source, options.samples, options.seed, preparation)
    if source is None:
        _log.warning("no calibration set: using %d synthetic images; real images give higher accuracy", len(samples))
    if preparation == PLAIN:
        warn_of_bytes(model, samples)
    return samples


def _float_source(
    source: Path, folder: Path, options: QuantizeOptions, *, dynamic: bool
) -> tuple[Path, QuantizeOptions]:
    """The float32 model of a float16 or dynamically quantized one, and options for the same weights."""
    path = folder / source.name
    if not dynamic:
        model = load_onnx(source)
        if not has_halves(model):
            return source, options
        onnx.save(in_float32(model), path)
        return path, options
    floats, per_channel = float_model(load_onnx(source))
    onnx.save(floats, path)
    return path, replace(options, weights=WeightScales.PER_CHANNEL if per_channel else WeightScales.PER_TENSOR)


def _check_operators(graph: onnx.GraphProto) -> None:
    """Refuse operators that onnxruntime, which calibrates, cannot run, and layers where its quantizer sees none."""
    for node in graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) not in host_operators():
            raise UnsupportedError(
                f"node {node.name or node.output[0]!r}: onnxruntime does not implement {domain}::{node.op_type}: "
                "replace it, or export the model with QuantizeLinear and DequantizeLinear",
                Refusal.OPERATOR.number,
            )
    branches = [node for node in graph.node if any(graphs_of(node))]
    if branches and not _has_layers(graph) and any(_has_layers(g) for g in all_graphs(graph)):
        raise UnsupportedError(
            f"node {branches[0].name or branches[0].output[0]!r}: its branches hold the layers, and the model has none "
            "outside: export the branch that you use",
            Refusal.CONTROL_FLOW.number,
        )


def _has_layers(graph: onnx.GraphProto) -> bool:
    return any(node.op_type in _LAYERS for node in graph.node)


def _excluded(graph: onnx.GraphProto, options: QuantizeOptions) -> tuple[str, ...]:
    names = {node.name for node in graph.node}
    for name in options.exclude:
        if name not in names:
            raise UsageError(f"node to exclude must be in the model, not {name!r}; intloom inspect lists the nodes")
    tail = float_tail(graph) if options.head is Head.FLOAT else []
    return tuple(dict.fromkeys([*tail, *options.exclude]))


class _Reader:
    """Passes samples to onnxruntime's calibrator."""

    def __init__(self, samples: Samples, report: Progress) -> None:
        self._samples, self._report = samples, report
        self._next = 0

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        """The next sample, or None after the last."""
        self._report("calibrate", self._next, len(self._samples))
        if self._next >= len(self._samples):
            self._report("quantize", 0, 1)
            return None
        self._next += 1
        return dict(self._samples[self._next - 1])

    def __len__(self) -> int:
        return len(self._samples)


@dataclass(frozen=True)
class _Quantizer:
    """onnxruntime's quantizer for one float model."""

    model: Path
    excluded: tuple[str, ...]
    report: Progress

    def calibrated(
        self, folder: Path, samples: Samples, options: QuantizeOptions
    ) -> tuple[onnx.ModelProto, QuantizeOptions, dict[Calibration, float]]:
        """The quantized model, the options with the method that made it, and the agreement by each method tried."""
        if options.calibration is not Calibration.AUTO:
            return self.quantized(folder / "quantized.onnx", samples, options), options, {}
        calibrating, held_back = hold_back(samples)
        model, tried, made, agreed = load_onnx(self.model), {}, {}, {}
        for method in CANDIDATES:
            tried[method] = replace(options, calibration=method)
            made[method] = self.quantized(folder / method, calibrating, tried[method])
            agreed[method] = agreement(model, made[method], held_back)
        best = max(agreed, key=lambda method: agreed[method])
        return made[best], tried[best], agreed

    def quantized(self, target: Path, samples: Samples, options: QuantizeOptions) -> onnx.ModelProto:
        """Write the model quantized by one method to `target`, with scales that suit the accelerator's sums.

        See `regular_scales`. The quantizer runs again with the same ranges, but for the scales that move.
        """
        mse = options.calibration is Calibration.MSE
        overrides = as_overrides(best_ranges(load_onnx(self.model), samples)) if mse else {}
        self.run(target, samples, options, overrides)
        made = first = onnx.load(target)
        for factor in FACTORS:
            moved = moved_scales(first, made, factor)
            if not moved:
                break
            overrides |= moved
            self.run(target, samples, options, overrides)
            made = onnx.load(target)
        return made

    def run(self, target: Path, samples: Samples, options: QuantizeOptions, overrides: Overrides) -> None:
        """Write a quantized model to `target`, and the ranges next to it: only the first call calibrates."""
        from onnxruntime.quantization import (
            CalibrationDataReader,
            CalibrationMethod,
            QuantFormat,
            QuantType,
            quantize_static,
        )

        methods = {
            Calibration.MINMAX: CalibrationMethod.MinMax,
            Calibration.ENTROPY: CalibrationMethod.Entropy,
            Calibration.PERCENTILE: CalibrationMethod.Percentile,
            Calibration.MSE: CalibrationMethod.MinMax,
        }
        # quantize_static requires an instance of CalibrationDataReader.
        reader_class = type("Reader", (_Reader, CalibrationDataReader), {})
        extra: dict[str, Any] = {"ForceQuantizeNoInputCheck": True}
        if options.calibration is Calibration.PERCENTILE:
            extra["CalibPercentile"] = options.percentile or DEFAULT_PERCENTILE
        if overrides:
            extra["TensorQuantOverrides"] = overrides
        unsigned = options.activations is ActivationType.UINT8
        try:
            with _quiet():
                quantize_static(
                    str(self.model),
                    str(target),
                    reader_class(samples, self.report),
                    quant_format=QuantFormat.QDQ if options.form is Form.QDQ else QuantFormat.QOperator,
                    per_channel=options.weights is WeightScales.PER_CHANNEL,
                    activation_type=QuantType.QUInt8 if unsigned else QuantType.QInt8,
                    weight_type=QuantType.QInt8,
                    nodes_to_exclude=list(self.excluded),
                    calibrate_method=methods[options.calibration],
                    extra_options=extra,
                    calibration_cache_path=target.with_suffix(".ranges"),
                )
        except (OSError, UsageError):
            raise
        except Exception as error:
            # onnxruntime's quantizer raises exceptions without a common base class, even AssertionError.
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            if reason == "scale issue":
                reason = "a value is not finite on the calibration inputs; give inputs of your data with --calibration"
            raise ModelError(f"onnxruntime cannot quantize the model: {reason}") from error


_WARNING, _FATAL = 2, 4
"""Severities of onnxruntime's log; the first is its default."""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the log and printed text of the quantizer, and the log of the sessions that it opens."""
    import onnxruntime

    root = logging.getLogger()
    onnxruntime.set_default_logger_severity(_FATAL)
    level, handlers = root.level, list(root.handlers)
    root.setLevel(logging.ERROR)
    try:
        with Path(os.devnull).open("w") as sink, contextlib.redirect_stdout(sink):
            yield
    finally:
        onnxruntime.set_default_logger_severity(_WARNING)
        root.setLevel(level)
        root.handlers[:] = handlers
