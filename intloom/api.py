"""The Python interface, with the calls of onnxruntime: compile a model, run it in a session.

>>> import intloom
>>> program = intloom.compile("yolov8n.q.onnx", preset="base")
>>> session = intloom.Session(program, backend="rtl", check=True)
>>> boxes = session.run(None, {"images": image})[0]
>>> session.last
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from intloom.arrays import Array
from intloom.common.errors import MismatchError, UsageError
from intloom.compiler.frontend import FoldedModel
from intloom.compiler.ir import IntGraph
from intloom.compiler.ir.onnx_export import to_onnx
from intloom.compiler.ir.serialize import save as save_graph
from intloom.compiler.program.program import Program as CompiledProgram
from intloom.files import write_bytes
from intloom.flow.bundle import Bundle, load_bundle
from intloom.flow.compiling import Compiled, choose_params, compile_model, store
from intloom.flow.record import hardware_name, make_record, save_run
from intloom.flow.running import execute, input_shapes, open_backend, open_host
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import HardwareParams
from intloom.notebook import graph_html, program_html, run_html
from intloom.sim.result import RunResult
from intloom.sim.rtl.options import RtlOptions

PathLike = str | Path


class Program:
    """A compiled program with its model.

    Returned by `compile` and `Program.load`. Displays as a table in a notebook.
    """

    def __init__(self, bundle: Bundle, compiled: Compiled | None = None) -> None:
        self._bundle = bundle
        self._compiled = compiled

    @staticmethod
    def load(path: PathLike, model: PathLike | None = None) -> Program:
        """The program in a file, with its model from `model` or from `PROGRAM.loom.onnx` in the same folder."""
        return Program(load_bundle(Path(path), None if model is None else Path(model)))

    def save(self, path: PathLike) -> None:
        """Write the program, and its model to `PROGRAM.loom.onnx`, as `intloom compile` does."""
        if self._compiled is None or self._bundle.model is None:
            raise UsageError(
                "only a freshly compiled program can be saved, and this one was loaded from a file: copy that file"
            )
        store(self._compiled, self._bundle.model, Path(path))

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
        return f"<Run on {r['backend']}: {r['cycles']} cycles, {r['mismatches']} of {r['compared_bytes']} bytes differ>"

    def _repr_html_(self) -> str:
        return run_html(self.record)


class Session:
    """Runs a program, with the calls of `onnxruntime.InferenceSession`.

    Parameters
    ----------
    program
        A `Program`, or the path of a .loom file.
    backend
        `golden`, `isa` or `rtl`.
    check
        Compare every run with the golden model and with onnxruntime. A difference raises `MismatchError`.
    rtl
        Options of the RTL simulation.
    """

    def __init__(
        self, program: Program | PathLike, backend: str = "rtl", *, check: bool = False, rtl: RtlOptions | None = None
    ) -> None:
        self._program = program if isinstance(program, Program) else Program.load(program)
        self._backend = open_backend(backend, self._program.bundle, rtl, keep_tensors=check)
        self._host = open_host(self._program.bundle)
        self._check = check
        self.last: Run | None = None
        """The latest run."""

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the inputs."""
        return input_shapes(self._program.bundle, self._host)

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Array]) -> list[Array]:
        """The outputs named in `output_names`, or all outputs, for the inputs in `feeds`.

        Raises
        ------
        UsageError
            A name, shape or type is invalid.
        MismatchError
            `check` is set and a byte differs.
        """
        if isinstance(output_names, str):
            raise UsageError(
                f"output_names must be a list of names, not the string {output_names!r}; write [{output_names!r}]"
            )
        done = execute(self._program.bundle, self._backend, _arrays(feeds), host=self._host, check=self._check)
        self.last = Run(self._program.program, done)
        if done.mismatches:
            worst = next(c for c in done.checks if c.mismatches)
            raise MismatchError(
                f"{worst.tensor} differs from {worst.against} in {worst.mismatches} bytes, {worst.first}"
            )
        names = list(done.model_outputs) if output_names is None else output_names
        if unknown := [n for n in names if n not in done.model_outputs]:
            raise UsageError(f"output must be one of {', '.join(done.model_outputs)}, not {unknown[0]!r}")
        return [done.model_outputs[n] for n in names]


def _arrays(feeds: Mapping[str, Any]) -> dict[str, Array]:
    """The feeds as arrays; nested lists are converted."""
    if not isinstance(feeds, Mapping):
        raise UsageError(f"feeds must be a dictionary of arrays by input name, not {type(feeds).__name__}")
    try:
        return {name: np.asarray(value) for name, value in feeds.items()}
    except ValueError as error:
        raise UsageError(f"feeds must be arrays of one shape each, but conversion failed: {error}") from None


def compile(  # noqa: A001  # named like torch.compile
    model: PathLike,
    preset: str | None = None,
    *,
    config: PathLike | None = None,
    match: str | None = None,
    dims: Mapping[str, int] | None = None,
    keep_intermediates: bool = False,
) -> Program:
    """Compile a quantized ONNX file for a preset, or for the hardware in the TOML file `config`."""
    if match is not None and match not in list(RoundingMode):
        raise UsageError(f"match must be one of {', '.join(RoundingMode)}, not {match!r}")
    chosen = None if match is None else RoundingMode(match)
    params = choose_params(preset, None if config is None else Path(config), chosen)
    source = Path(model)
    compiled = compile_model(source, params, dims=dims, keep_intermediates=keep_intermediates)
    return Program(Bundle(compiled.programs, source, compiled.folded, compiled.output_names), compiled)
