"""A program together with the model that it was compiled from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from intloom.common.errors import FileFormatError, UsageError
from intloom.compiler.frontend import FoldedModel, fold_model
from intloom.compiler.importer import load_model
from intloom.compiler.program.combined_program import combined_program
from intloom.compiler.program.file import load_regions
from intloom.compiler.program.program import Program
from intloom.flow.compiling import model_beside


@dataclass(frozen=True, eq=False)
class Bundle:
    """The programs of a model's regions; with the model at hand, also the folded model and the model's file."""

    programs: tuple[Program, ...]
    model: Path | None = None
    folded: FoldedModel | None = None
    output_names: tuple[str, ...] = ()
    """The model's outputs, in its own order."""

    @cached_property
    def program(self) -> Program:
        """All regions together, for counting and showing."""
        return combined_program(self.programs)

    def need_model(self, purpose: str) -> FoldedModel:
        """The folded model; without one the error says what it is needed for."""
        if self.folded is None:
            raise UsageError(
                f"{purpose} needs the model that {self.program.name} was compiled from: name it with --model"
            )
        return self.folded


def load_bundle(program: Path, model: Path | None = None) -> Bundle:
    """The programs in a file, and their model: `model`, or the copy that `intloom compile` put beside the program.

    Raises
    ------
    FileFormatError
        A file is missing or broken, or the model is not the one that the program was compiled from.
    """
    loaded = load_regions(program)
    beside = model_beside(program)
    chosen = model if model is not None else beside if beside.exists() else None
    if chosen is None:
        return Bundle(loaded)
    imported = load_model(chosen)
    folded = fold_model(imported, match=loaded[0].params.match)
    if loaded[0].source and folded.source != loaded[0].source:
        raise FileFormatError(
            f"{chosen} must be the model that {program} was compiled from: its hash is {folded.source[:12]}, "
            f"not {loaded[0].source[:12]}; compile again or name the right one with --model"
        )
    return Bundle(loaded, chosen, folded, tuple(imported.outputs))
