"""The Python interface, with the calls of onnxruntime: compile a model, run it in a session.

>>> import intloom
>>> program = intloom.compile("yolov8n.q.onnx", preset="base")
>>> session = intloom.Session(program, backend="rtl", check=True)
>>> boxes = session.run(None, {"images": image})[0]
>>> session.last
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import onnx

from intloom.arrays import Array
from intloom.common.errors import UsageError
from intloom.compiler.frontend import FoldedModel
from intloom.compiler.ir import IntGraph
from intloom.compiler.ir.onnx_export import to_onnx
from intloom.compiler.ir.serialize import save as save_graph
from intloom.compiler.program.file import MAGIC, from_bytes
from intloom.compiler.program.program import Program as CompiledProgram
from intloom.exploration.device import device_of
from intloom.exploration.energy import choose_technology
from intloom.exploration.explore import Budget, Exploration
from intloom.exploration.explore import explore as explore_space
from intloom.exploration.space import device_space, read_space, space_of
from intloom.files import read_prefix, write_bytes
from intloom.flow.bundle import Bundle, bundle_without_model, load_bundle
from intloom.flow.compiling import compile_model, store
from intloom.flow.record import hardware_name, make_record, save_run
from intloom.hw.options import choose_params
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import HardwareParams
from intloom.models import ModelSource, parse_model
from intloom.notebook import graph_html, program_html, run_html
from intloom.sim.processes import Processes
from intloom.sim.result import RunResult

PathLike = str | Path


class Program:
    """A compiled program with its model.

    Returned by `compile` and `Program.load`. Displays as a table in a notebook.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle

    @staticmethod
    def load(path: PathLike, model: PathLike | None = None) -> Program:
        """The program in a file, with its model from `model` or from `PROGRAM.loom.onnx` in the same folder."""
        return Program(load_bundle(Path(path), None if model is None else Path(model)))

    def save(self, path: PathLike) -> None:
        """Write the program, and its model to `PROGRAM.loom.onnx`, as `intloom compile` does."""
        store(self._bundle, Path(path))

    @property
    def bundle(self) -> Bundle:
        """The program and its model."""
        return self._bundle

    @property
    def program(self) -> CompiledProgram:
        """Instructions, constants and the addresses of all tensors."""
        return self._bundle.program

    @property
    def folded(self) -> FoldedModel | None:
        """The model as integers, with assignments and warnings; None where the model is not at hand."""
        return self._bundle.folded

    @property
    def graph(self) -> Graph:
        """The model as integer operations."""
        return Graph(self._bundle.need_model("the graph").graph)

    @property
    def params(self) -> HardwareParams:
        """The hardware parameters that the program was compiled for."""
        return self.program.params

    @property
    def predicted_cycles(self) -> int:
        """Cycles predicted by the compiler."""
        return self.program.predicted_cycles

    def __repr__(self) -> str:
        count = len(self.program.instructions)
        return f"<Program {self.program.name!r} for {hardware_name(self.program)}, {count} instructions>"

    def _repr_html_(self) -> str:
        return program_html(self.program)


class Graph:
    """The integer graph of a model. Displays as a table in a notebook."""

    def __init__(self, graph: IntGraph) -> None:
        self.ir = graph
        """Nodes and tensors; see `intloom.compiler.ir`."""

    def save(self, path: PathLike) -> None:
        """Write the graph as text, or as an ONNX file for Netron and onnxruntime if `path` ends in `.onnx`."""
        if Path(path).suffix == ".onnx":
            write_bytes(Path(path), to_onnx(self.ir))
        else:
            save_graph(self.ir, Path(path))

    def __repr__(self) -> str:
        return f"<Graph {self.ir.name!r} of {len(self.ir.nodes)} integer operations>"

    def _repr_html_(self) -> str:
        return graph_html(self.ir)


class Run:
    """Results and cost of one inference. Displays as a summary in a notebook."""

    def __init__(self, program: CompiledProgram, result: RunResult) -> None:
        self._program = program
        self._result = result
        self.record: Mapping[str, Any] = make_record(program, result)
        """Everything that `intloom run --json` prints."""

    @property
    def outputs(self) -> Mapping[str, Array]:
        """The model's outputs by name."""
        return self._result.model_outputs

    def save(self, folder: PathLike) -> Path:
        """Write outputs, record and timeline as `intloom run -o` does; return the folder."""
        save_run(Path(folder), self._program, self._result)
        return Path(folder)

    def report(self, folder: PathLike) -> Path:
        """Save the run in `folder` with its report; return the path of the page."""
        from intloom.report import write_report

        return write_report(self.save(folder))

    def __repr__(self) -> str:
        r = self.record
        cycles = f"{r['cycles']:,} cycles, " if r["cycles"] else ""
        return f"<Run on {r['backend']}: {cycles}{r['mismatches']:,} of {r['compared_bytes']:,} bytes differ>"

    def _repr_html_(self) -> str:
        return run_html(self.record)


def compile(  # noqa: A001  # named like torch.compile
    model: PathLike | bytes | onnx.ModelProto,
    preset: str | HardwareParams | None = None,
    *,
    config: PathLike | None = None,
    changes: Mapping[str, Any] | None = None,
    match: str | None = None,
    dims: Mapping[str, int] | None = None,
    keep_intermediates: bool = False,
    effort: int = 1,
) -> Program:
    """Compile a quantized model (a file, its bytes or a ModelProto) for a preset, or for the hardware in `config`.

    `preset` may also be hardware parameters. `changes` are changed parameters, such as `{"rows": 8}`.
    `effort` is how many fused schedules the compiler tries, 1 to 3; with 0, every tensor goes through DRAM.
    """
    if match is not None and match not in list(RoundingMode):
        raise UsageError(f"match must be one of {', '.join(RoundingMode)}, not {match!r}")
    chosen = None if match is None else RoundingMode(match)
    params = choose_params(preset, None if config is None else Path(config), chosen, changes)
    source = _model_source(model)
    return Program(compile_model(source, params, dims=dims, keep_intermediates=keep_intermediates, effort=effort))


def explore(
    models: PathLike | Sequence[PathLike],
    space: PathLike | Mapping[str, Any] | None = None,
    *,
    device: str = "LFE5U-85F",
    weights: Sequence[float] | None = None,
    technology: str = "45nm",
    jobs: int = 1,
    dims: Mapping[str, int] | None = None,
    **budget: Any,
) -> Exploration:
    """Forecast quantized models on many configurations, as `intloom explore` does; `rows()` is a table for pandas.

    `space` is a TOML file or its content as a mapping. `budget` has `fps`, `bandwidth` (MB/s), `latency`, `mhz` and
    `accelerators`.
    """
    paths = [Path(model) for model in ([models] if isinstance(models, str | Path) else models)]
    counts = [1.0] * len(paths) if weights is None else weights
    if not paths or len(counts) != len(paths):
        raise UsageError(f"explore needs at least one model and a weight for each, not {len(paths)} and {len(counts)}")
    known = {f.name for f in fields(Budget)} - {"device", "technology"}
    if unknown := sorted(set(budget) - known):
        raise UsageError(f"explore has no option {unknown[0]!r}; a budget has {', '.join(sorted(known))}")
    asked = Budget(device=device_of(device), technology=choose_technology(technology), **budget)
    points = space_of(space) if isinstance(space, Mapping) else read_space(None if space is None else Path(space))
    chosen = device_space(points, asked.device.family)
    return explore_space(list(zip(paths, counts, strict=True)), chosen, asked, dims=dims, where=Processes(jobs))


def _model_source(model: PathLike | bytes | onnx.ModelProto) -> ModelSource:
    if isinstance(model, onnx.ModelProto):
        return model
    if isinstance(model, bytes):
        return parse_model(model)
    return Path(model)


def load_program(source: PathLike | bytes) -> Program | None:
    """The program in a file or in its bytes; None if the content is not a program."""
    if isinstance(source, bytes):
        known = source.startswith(MAGIC)
        return Program(bundle_without_model(from_bytes(source, Path("the program")))) if known else None
    if not isinstance(source, str | Path):
        raise UsageError(f"a program or model must be a path, bytes or a ModelProto, not {type(source).__name__}")
    is_program = read_prefix(Path(source), len(MAGIC), "model or program") == MAGIC
    return Program.load(source) if is_program else None
