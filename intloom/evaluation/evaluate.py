"""Evaluation: accuracy of the float model, the quantized model and the accelerator side by side."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from intloom.api import Program, compile, load_program  # noqa: A004  # see intloom.api
from intloom.arrays import save_array
from intloom.common.errors import UsageError
from intloom.compiler.importer.dims import fix_dims
from intloom.evaluation.agreement import labeled_by
from intloom.evaluation.average_precision import Score
from intloom.evaluation.dataset import Dataset, Task, load_dataset
from intloom.evaluation.decode import class_count
from intloom.evaluation.engines import (
    Engine,
    Images,
    Normalization,
    accelerator_engine,
    onnx_engine,
    results,
    same,
)
from intloom.evaluation.layer_cost import LayerCost, layer_costs
from intloom.evaluation.scoring import Scored, score_classes, score_objects
from intloom.files import check_folder
from intloom.flow.model_interface import read_metadata
from intloom.hw.spec.params import HardwareParams
from intloom.models import is_quantized, load_onnx, model_proto, operators
from intloom.pictures import draw_boxes, open_picture
from intloom.preparation import PLAIN, Preparation, stored_preparation
from intloom.quantization import QuantizeOptions, quantize

Tell = Callable[[str, int, int], None]
FLOAT, QUANTIZED, ACCELERATOR, RTL = "float", "quantized", "accelerator", "rtl"
_CALIBRATION_IMAGES, _COST_IMAGES, _WORST, _DRAWN = 32, 4, 4, 20
_LOSS = 0.01
"""Loss of accuracy from which suggestions are made."""
_LARGE_SHARE = 0.2
_LEAST_DRAWN_SCORE = 0.25


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Options of an evaluation."""

    task: Task
    folder: Path = Path("out/evaluate")
    """Results of every image, and pictures of the worst ones."""
    float_model: Path | None = None
    """The float model of a quantized model or program."""
    params: HardwareParams | None = None
    """The accelerator of a model; a program has its own."""
    images: int | None = None
    """Maximum number of images."""
    rtl_images: int = 1
    normalization: Normalization | None = None
    """None is what the model stores, else pixels from 0 to 1."""
    preparation: Preparation = PLAIN
    """How pictures become inputs; the evaluation sets it."""
    dims: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """Result of an evaluation."""

    task: Task
    images: int
    labeled: bool
    """Otherwise figures are agreement with the float model."""
    scores: Mapping[str, Score]
    """By engine."""
    rtl_images: int
    rtl_equal: bool
    costs: tuple[LayerCost, ...]
    worst: tuple[Path, ...]
    suggestions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "task": str(self.task),
            "images": self.images,
            "labeled": self.labeled,
            "scores": {n: {"figures": s.figures, "classes": s.classes} for n, s in self.scores.items()},
            "rtl": {"images": self.rtl_images, "equal": self.rtl_equal},
            "layers": [{"layer": c.layer, "share": c.share} for c in self.costs],
            "worst": [str(p) for p in self.worst],
            "suggestions": list(self.suggestions),
        }


def evaluate(
    model: Path, data: Path, options: EvaluateOptions, *, say: Callable[[str], None], tell: Tell
) -> Evaluation:
    """Evaluate a float model, a quantized model or a program on images.

    Without labels, the float model's results take their place: figures are agreement with it. A float model is
    quantized with images of the data, and compiled. An interrupted evaluation resumes.

    Raises
    ------
    FileFormatError
        The data has none of the known layouts, or a picture cannot be read.
    UsageError
        The network's outputs are not those of the task, the network has other classes than the data, or data without
        labels has no float model.
    """
    check_folder(options.folder, "output")
    dataset = load_dataset(data, options.task).first(options.images)
    float_model, program = _prepare(model, dataset, options, say, tell)
    options = _prepared(options, program.bundle.inputs[0].preparation)
    if not dataset.labeled and float_model is None:
        raise UsageError(f"{data} has no labels, so results are compared with the float model; give it with --float")
    engines = _engines(float_model, program, options)
    dataset = _with_classes(dataset, engines[0], options.task)
    raw = {e.name: _all(e, dataset, options, len(dataset.samples), tell) for e in engines}
    if not dataset.labeled:
        say("the data has no labels: figures are agreement with the float model")
        dataset = labeled_by(dataset, raw[FLOAT], options.task)
    scored = {name: _score(values, dataset, options.task) for name, values in raw.items()}
    sample = min(options.rtl_images, len(dataset.samples))
    rtl = _all(accelerator_engine(RTL, program, "rtl"), dataset, options, sample, tell) if sample else []
    costs = _costs(float_model, program, dataset, options, tell) if float_model is not None else []
    return Evaluation(
        options.task,
        len(dataset.samples),
        dataset.labeled,
        {name: s.score for name, s in scored.items()},
        sample,
        same(rtl, raw[ACCELERATOR][:sample]),
        tuple(costs),
        tuple(_draw_worst(raw[ACCELERATOR], scored[ACCELERATOR], dataset, options)),
        tuple(suggest({n: s.score for n, s in scored.items()}, costs, len(dataset.samples))),
    )


def _prepare(
    model: Path, data: Dataset, options: EvaluateOptions, say: Callable[[str], None], tell: Tell
) -> tuple[Path | None, Program]:
    """The float model if there is one, and the program."""
    program = load_program(model)
    if program is not None:
        if options.params is not None:
            raise UsageError(
                "--preset, --config, --set and --match cannot be given for a program, which is compiled already; give "
                "the model"
            )
        program.bundle.need_model("evaluate")
        return options.float_model, program
    float_model, quantized = options.float_model, model
    if not is_quantized(operators(load_onnx(model, external_data=False))):
        if float_model is not None:
            raise UsageError(f"--float is for quantized models, but {model} is a float model; remove it")
        float_model, quantized = model, options.folder / f"{model.stem}.q.onnx"
        if not quantized.exists():
            say(f"{model} is quantized with images of the data; see intloom quantize for other options")
            options = _prepared(options, stored_preparation(read_metadata(model).custom_metadata_map) or PLAIN)
            samples, settings = _calibration(model, data, options), QuantizeOptions(samples=_CALIBRATION_IMAGES)
            quantize(
                model,
                quantized,
                samples,
                settings,
                dims=options.dims or None,
                progress=tell,
                preparation=options.preparation,
            )
    tell("compile", 0, 1)
    # What was quantized here has its sizes already.
    dims = options.dims if quantized == model else None
    return float_model, compile(quantized, options.params, dims=dims or None)


def _prepared(options: EvaluateOptions, stored: Preparation) -> EvaluateOptions:
    """The options with the preparation that they, the model or the task ask for."""
    if options.normalization is None and stored != PLAIN:
        return replace(options, preparation=stored)
    return replace(options, preparation=(options.normalization or Normalization.UNIT).preparation(options.task))


def _with_sizes(model: onnx.ModelProto, dims: Mapping[str, int]) -> onnx.ModelProto:
    """A copy of the model with sizes for its open dimensions."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    fix_dims(fixed.graph, dims)
    return fixed


def _with_classes(data: Dataset, engine: Engine, task: Task) -> Dataset:
    """The data with the network's classes, if it names none.

    Raises
    ------
    UsageError
        The network has another number of classes than the data.
    """
    known = all(isinstance(size, int) for size in engine.made)
    count = class_count(engine.made, task) if engine.made and known else None
    if not data.labeled:
        return replace(data, classes=tuple(str(i) for i in range(1 if count is None else count)))
    if count is not None and count != len(data.classes):
        raise UsageError(
            f"the network has {count} classes for {task} (first output {list(engine.made)}), the data has "
            f"{len(data.classes)}; check --task, or name all classes of the network in the data (classes.txt)"
        )
    return data


def _calibration(model: Path, data: Dataset, options: EvaluateOptions) -> Path:
    """Inputs made from images of the data, as the engines make them."""
    shape = onnx_engine(FLOAT, _with_sizes(load_onnx(model), options.dims)).shape
    tensors = [options.preparation.floats(s.path, shape) for s in data.samples[:_CALIBRATION_IMAGES]]
    path = options.folder / "calibration.npy"
    save_array(path, np.concatenate(tensors))
    return path


def _engines(float_model: Path | None, program: Program, options: EvaluateOptions) -> list[Engine]:
    engines = []
    if float_model is not None:
        engines.append(onnx_engine(FLOAT, _with_sizes(load_onnx(float_model), options.dims)))
    quantized = onnx_engine(QUANTIZED, _quantized(program))
    return [*engines, quantized, accelerator_engine(ACCELERATOR, program, "golden")]


def _quantized(program: Program) -> onnx.ModelProto:
    model = program.bundle.model
    assert model is not None  # _prepare has checked it
    return _with_sizes(model_proto(model), program.program.dims)


def _all(engine: Engine, data: Dataset, options: EvaluateOptions, count: int, tell: Tell) -> list[Any]:
    outcomes = []
    tell(engine.name, 0, count)
    images = Images(data, options.task, options.preparation, count)
    for result in results(engine, images, options.folder / "results"):
        outcomes.append(result)
        tell(engine.name, len(outcomes), count)
    return outcomes


def _score(values: list[Any], data: Dataset, task: Task) -> Scored:
    return score_classes(values, data) if task is Task.CLASSIFY else score_objects(values, data, task)


def _costs(float_model: Path, program: Program, data: Dataset, options: EvaluateOptions, tell: Tell) -> list[LayerCost]:
    floats = _with_sizes(load_onnx(float_model), options.dims)
    shape = onnx_engine(FLOAT, floats).shape
    tensors = [options.preparation.floats(s.path, shape) for s in data.samples[:_COST_IMAGES]]
    return layer_costs(floats, _quantized(program), tensors, lambda n, total: tell("layers", n, total))


def _draw_worst(values: list[Any], scored: Scored, data: Dataset, options: EvaluateOptions) -> list[Path]:
    """Pictures of the images with the lowest figures, with objects found, or for a classifier the class."""
    made = []
    order = np.argsort(scored.images, kind="stable")[:_WORST]
    for number, index in enumerate(order, 1):
        sample, value = data.samples[index], values[index]
        path = options.folder / f"worst-{number}.png"
        picture = open_picture(sample.path)
        if options.task is Task.CLASSIFY:
            boxes = np.zeros((1, 4), np.float32)
            labels = [f"{data.classes[int(value.argmax())]}, is {data.classes[sample.truths[0].label]}"]
        else:
            shown = np.flatnonzero(value.scores >= _LEAST_DRAWN_SCORE)[:_DRAWN]
            truths = np.array([t.box for t in sample.truths], np.float32).reshape(-1, 4)
            boxes = np.concatenate([truths, value.boxes[shown].astype(np.float32)])
            labels = [f"label {data.classes[t.label]}" for t in sample.truths]
            labels += [f"{data.classes[value.labels[i]]} {value.scores[i]:.2f}" for i in shown]
        draw_boxes(picture, boxes, labels, path)
        made.append(path)
    return made


def suggest(scores: Mapping[str, Score], costs: list[LayerCost], images: int) -> list[str]:
    """What may reduce the loss between float and accelerator."""
    if FLOAT not in scores:
        return ["give the float model with --float to see what quantization costs"]
    figure = next(iter(scores[FLOAT].figures))
    loss = scores[FLOAT].figures[figure] - scores[ACCELERATOR].figures[figure]
    if loss < _LOSS:
        return []
    suggestions = [
        f"{figure} is {100 * loss:.1f} points below float: quantize with --equalize or --calibration-method percentile"
    ]
    if images < _CALIBRATION_IMAGES:
        suggestions.append(
            f"use more calibration images than {images}: --calibration FOLDER --samples {_CALIBRATION_IMAGES}"
        )
    suggestions += [
        f"{c.layer} causes {100 * c.share:.0f} % of the error: keep it float on the host with --exclude {c.layer}"
        for c in costs[:3]
        if c.share >= _LARGE_SHARE
    ]
    return suggestions
