"""From a quantized model file to a program file, with the model kept beside it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from intloom.common.errors import UnsupportedError, UsageError
from intloom.compiler.frontend import FoldedModel, fold_model
from intloom.compiler.importer import load_model
from intloom.compiler.program.combined_program import combined_program
from intloom.compiler.program.file import save_regions
from intloom.compiler.program.program import Program
from intloom.compiler.schedule import compile_graph
from intloom.files import atomic_path, check_output
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import HardwareParams, from_toml, preset
from intloom.models import is_quantized, load_onnx

DEFAULT_PRESET = "base"
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Compiled:
    """The programs of a model's regions, what the model was folded into, and what it took."""

    programs: tuple[Program, ...]
    folded: FoldedModel
    output_names: tuple[str, ...]
    """The model's outputs, in its own order."""
    seconds: float

    @cached_property
    def program(self) -> Program:
        """All regions together, for counting and showing."""
        return combined_program(self.programs)


def choose_params(preset_name: str | None, config: Path | None, match: RoundingMode | None) -> HardwareParams:
    """Hardware parameters from a preset or a TOML file, with another rounding where `match` is given.

    Raises
    ------
    UsageError
        Both a preset and a file are given.
    ParameterError
        The preset is unknown or the file contradicts itself.
    """
    if preset_name is not None and config is not None:
        raise UsageError(f"give either --preset or --config, not both ({preset_name} and {config})")
    params = from_toml(config) if config is not None else preset(DEFAULT_PRESET if preset_name is None else preset_name)
    return params if match is None else params.replace(match=str(match))


def compile_model(
    source: Path,
    params: HardwareParams,
    *,
    dims: Mapping[str, int] | None = None,
    keep_intermediates: bool = False,
    progress: Tell | None = None,
) -> Compiled:
    """Folds and schedules the quantized model in `source` for the hardware `params`."""
    started = time.perf_counter()
    tell = progress or (lambda _stage, _done, _all: None)
    tell("fold", 0, 1)
    model = load_model(source, dims=dims)
    folded = fold_model(model, match=params.match)
    if not folded.regions and not is_quantized(v.op for v in folded.assignments):
        raise UnsupportedError(f"{source} is not quantized: first run intloom quantize {source} -o QUANTIZED.onnx")
    tell("fold", 1, 1)
    _ = folded.graph  # refuses a model of which nothing can be accelerated
    programs = []
    for index, region in enumerate(folded.regions):
        made = compile_graph(
            region,
            params,
            keep_intermediates=keep_intermediates,
            progress=lambda done, every: tell("schedule", done, every),
        )
        programs.append(replace(made, source=folded.source, region=index, regions=len(folded.regions)))
    return Compiled(tuple(programs), folded, tuple(model.outputs), time.perf_counter() - started)


def model_beside(program: Path) -> Path:
    """Where the model of a program file is kept."""
    return program.with_name(f"{program.name}.onnx")


def store(compiled: Compiled, source: Path, target: Path) -> None:
    """Writes the program and, beside it, a copy of its model, from which results are checked and host parts run."""
    check_output(target, source)
    with atomic_path(model_beside(target)) as temporary:
        # External data is not copied along: the model is written anew in one piece.
        _copy_model(source, temporary)
        # Inside, so that whoever interrupts finds both or none.
        save_regions(compiled.programs, target)


def _copy_model(source: Path, target: Path) -> None:
    model = load_onnx(source)
    if any(t.data_location for t in load_onnx(source, external_data=False).graph.initializer):
        target.write_bytes(model.SerializeToString(deterministic=True))
    else:
        shutil.copyfile(source, target)
