"""A program with the model that it was compiled from."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from intloom.common.errors import FileFormatError, UsageError
from intloom.compiler.frontend import FoldedModel, fold_for
from intloom.compiler.importer import load_model
from intloom.compiler.ir import IntGraph
from intloom.compiler.program.file import load_regions
from intloom.compiler.program.program import Program, Role, combined_program
from intloom.flow.host import HostParts, output_quant, plain_quant
from intloom.flow.model_interface import NodeArg, float_args, input_args, output_args
from intloom.flow.reference import host_of
from intloom.models import ModelSource, is_tflite_file


@dataclass(frozen=True, eq=False)
class Bundle:
    """The programs of a model's regions and, if available, the model and its folded form."""

    programs: tuple[Program, ...]
    model: ModelSource | None = None
    folded: FoldedModel | None = None
    inputs: tuple[NodeArg, ...] = ()
    outputs: tuple[NodeArg, ...] = ()
    """Inputs and outputs in the model's order; without the model, those of the program."""
    micro: bool = False
    """A check also says how far the results are from the kernels of TFLite Micro, instead of LiteRT's default ones."""

    def __repr__(self) -> str:
        return f"<Bundle {self.program.name!r}, {len(self.programs)} regions>"

    @cached_property
    def program(self) -> Program:
        """All regions merged into one program, for totals and listings."""
        return combined_program(self.programs)

    @cached_property
    def host(self) -> HostParts | None:
        """The host parts of the model, or None without the model."""
        return None if self.folded is None else host_of(self.folded)

    def need_model(self, purpose: str) -> FoldedModel:
        """The folded model; `purpose` names in the message what needs it."""
        if self.folded is None:
            raise UsageError(
                f"{purpose} needs the model that {self.program.name} was compiled from; give it with --model"
            )
        return self.folded


def model_beside(program: Path, source: ModelSource | None = None) -> Path:
    """Path of the model copy of a program file: of the model `source`, else of the copy that exists."""
    onnx, tflite = (program.with_name(f"{program.name}{suffix}") for suffix in (".onnx", ".tflite"))
    from_tflite = tflite.exists() and not onnx.exists() if source is None else is_tflite_file(source)
    return tflite if from_tflite else onnx


def load_bundle(program: Path, model: Path | None = None, dims: Mapping[str, int] | None = None) -> Bundle:
    """The programs in a file with their model: `model`, or `PROGRAM.loom.onnx` in the same folder if it exists.

    Open dimensions of the model have the sizes of the program, which `dims` must not contradict.

    Raises
    ------
    FileFormatError
        A file is missing or damaged, or the program was compiled from another model or by another version.
    UsageError
        The program was compiled for other sizes than `dims`.
    """
    loaded = load_regions(program)
    _check_dims(program, loaded[0].dims, dims or {})
    beside = model_beside(program)
    chosen = model if model is not None else beside if beside.exists() else None
    if chosen is None:
        return bundle_without_model(loaded)
    try:
        imported = load_model(chosen, dims=loaded[0].dims)
    except UsageError as error:
        raise FileFormatError(f"{chosen} must be the model that {program} was compiled from: {error}") from None
    params = loaded[0].params
    folded = fold_for(imported, params)
    if loaded[0].source and folded.source != loaded[0].source:
        raise FileFormatError(
            f"{chosen} must be the model that {program} was compiled from: its hash is {folded.source[:12]}, "
            f"not {loaded[0].source[:12]}; compile again or give the right model with --model"
        )
    if len(loaded) != len(folded.regions) or not all(map(_has_same_ends, loaded, folded.regions)):
        raise FileFormatError(f"{program} was compiled from {chosen} by another version of Intloom: compile it again")
    return Bundle(loaded, chosen, folded, input_args(imported, chosen), output_args(imported, chosen))


def _has_same_ends(program: Program, region: IntGraph) -> bool:
    """Whether inputs and outputs of a program are those of the region as it is folded now."""
    stored = {t.name: (t.shape, t.scale, t.zero_point) for t in program.tensors if t.role in (Role.INPUT, Role.OUTPUT)}
    ends = (region.tensors[name] for name in (*region.inputs, *region.outputs))
    return stored == {t.name: (t.shape, t.scale, t.zero_point) for t in ends}


def bundle_without_model(programs: tuple[Program, ...]) -> Bundle:
    """The programs alone: inputs and outputs are those of the accelerator, as real numbers."""
    whole = combined_program(programs)
    inputs, outputs = (float_args({n: q.shape for n, q in f(whole).items()}) for f in (plain_quant, output_quant))
    return Bundle(programs, inputs=inputs, outputs=outputs)


def _check_dims(program: Path, known: Mapping[str, int], wanted: Mapping[str, int]) -> None:
    for name, size in wanted.items():
        if known.get(name) != size:
            sizes = " ".join(f"{k}={n}" for k, n in known.items()) or "fixed sizes"
            raise UsageError(
                f"{program} was compiled for {sizes}, not {name}={size}: compile it with --dim {name}={size}"
            )
