"""Compilation of a quantized model file into a program file with a copy of its model."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from intloom.common.collector import collector_paused
from intloom.common.errors import UnsupportedError
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import FoldedModel, fold_for
from intloom.compiler.importer import load_model
from intloom.compiler.program.file import save_regions
from intloom.compiler.program.program import MemoryTiming
from intloom.compiler.refusals import Refusal
from intloom.compiler.schedule import DEFAULT_MEMORY, compile_graph
from intloom.files import atomic_path, check_output
from intloom.flow.bundle import Bundle, model_beside
from intloom.flow.model_interface import input_args, output_args
from intloom.flow.trial import try_host_parts
from intloom.hw.spec.params import HardwareParams
from intloom.models import ModelSource, is_quantized, is_tflite_file, load_onnx
from intloom.quantization.dynamic import is_dynamic

Tell = Callable[[str, int, int], None]


@collector_paused()
def compile_model(
    source: ModelSource,
    params: HardwareParams,
    *,
    dims: Mapping[str, int] | None = None,
    keep_intermediates: bool = False,
    effort: int = 1,
    memory: MemoryTiming = DEFAULT_MEMORY,
    progress: Tell | None = None,
) -> Bundle:
    """Fold and schedule the quantized model `source` for the hardware `params`."""
    tell = progress or (lambda _stage, _done, _all: None)
    tell("fold", 0, 1)
    model = load_model(source, dims=dims)
    folded = fold_for(model, params)
    require_static(folded, source if isinstance(source, Path) else model.name)
    tell("fold", 1, 1)
    _ = folded.graph  # an error if no node can be accelerated
    _require_known(folded)
    try_host_parts(folded)
    programs = []
    for index, region in enumerate(folded.regions):
        made = compile_graph(
            region,
            params,
            keep_intermediates=keep_intermediates,
            effort=effort,
            memory=memory,
            progress=lambda done, every: tell("schedule", done, every),
        )
        programs.append(replace(made, source=folded.source, dims=model.dims, region=index, regions=len(folded.regions)))
    return Bundle(tuple(programs), source, folded, input_args(model, source), output_args(model, source))


def require_static(folded: FoldedModel, name: Path | str) -> None:
    """Raise `UnsupportedError` with the way to a static quantization if the model `name` has none."""
    if folded.regions:
        return
    _require_known(folded)
    operators = [v.op for v in folded.assignments]
    if not is_quantized(operators):
        tflite = folded.model is not None and folded.model.tflite is not None
        remedy = "convert it to full int8" if tflite else f"run intloom quantize {name} -o QUANTIZED.onnx first"
        raise UnsupportedError(f"{name} is not quantized; {remedy}", Refusal.FLOAT_MODEL.number)
    if is_dynamic(operators):
        raise UnsupportedError(
            f"{name} is quantized dynamically, its scales are known only when it runs; first run "
            f"intloom quantize {name} --calibration IMAGES -o QUANTIZED.onnx",
            Refusal.DYNAMIC.number,
        )


def _require_known(folded: FoldedModel) -> None:
    """Raise `UnsupportedError` if neither the accelerator nor onnxruntime has an operator."""
    unknown = next((a for a in folded.assignments if a.target is Target.UNSUPPORTED), None)
    if unknown is not None:
        raise UnsupportedError(f"node {unknown.name!r}: {unknown.reason}: {unknown.remedy}", unknown.row)


def store(bundle: Bundle, target: Path) -> None:
    """Write the programs of a model's regions and a copy of the model, if known, which checks and host parts need."""
    source = bundle.model
    check_output(target, *([source] if isinstance(source, Path) else []))
    if source is None:
        save_regions(bundle.programs, target)
        return
    with atomic_path(model_beside(target, source)) as temporary:
        # A model with external data is written as one file, since its data files are not copied.
        _copy_model(source, temporary)
        # Inside the block: an interrupt leaves both files or none.
        save_regions(bundle.programs, target)


def _copy_model(source: ModelSource, target: Path) -> None:
    if not isinstance(source, Path):
        target.write_bytes(source.SerializeToString(deterministic=True))
        return
    if is_tflite_file(source):
        shutil.copyfile(source, target)
        return
    model = load_onnx(source)
    if any(t.data_location for t in load_onnx(source, external_data=False).graph.initializer):
        target.write_bytes(model.SerializeToString(deterministic=True))
    else:
        shutil.copyfile(source, target)
