"""The session: runs a model on the accelerator, with the calls of `onnxruntime.InferenceSession`."""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray

from intloom.api import PathLike, Program, Run, compile, load_program  # noqa: A004  # see intloom.api
from intloom.common.errors import MismatchError, UsageError
from intloom.flow.frames import in_turn
from intloom.flow.model_interface import ModelMetadata, NodeArg, read_metadata, split_batch, typed_feeds
from intloom.flow.record import hardware_name
from intloom.flow.running import can_locate, execute, locate, open_backend
from intloom.sim.result import RunResult
from intloom.sim.rtl.options import RtlOptions

PROVIDERS = ("IntloomExecutionProvider", "CPUExecutionProvider")
"""Where a session's nodes run: on the accelerator, or on the host's processor."""


class Session:
    """Runs a model or a program, with the calls of `onnxruntime.InferenceSession`.

    Threads can share a session. Runs of a session whose `rtl` options keep the run's files take turns.

    Parameters
    ----------
    path_or_bytes
        A program (`Program`, or the path or bytes of a .loom file), or a quantized model (a path, bytes or a
        ModelProto), which is compiled.
    sess_options, providers, provider_options
        As in onnxruntime; accepted without effect, because the model's nodes are assigned by the compiler.
    backend
        `golden`, `isa`, `rtl` or `board:ADDRESS` (see docs/boards.md); all give the same bytes. Default: `rtl` for a
        program, `golden` for a model.
    check
        Compare every run byte for byte with the golden model, and with onnxruntime on the integer form of the model
        (the exact comparison). A difference raises `MismatchError`. The distance from the user's own file in plain
        onnxruntime is information: `last.record["original"]`.
    rtl
        Options of the RTL simulation.
    preset, config, dims
        For a model only: see `intloom.compile`.

    Raises
    ------
    UsageError
        Arguments contradict each other.
    FileFormatError
        The file is neither a model nor a program.
    """

    def __init__(
        self,
        path_or_bytes: Program | PathLike | bytes | onnx.ModelProto,
        sess_options: object = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        backend: str | None = None,
        check: bool = False,
        rtl: RtlOptions | None = None,
        preset: str | None = None,
        config: PathLike | None = None,
        dims: Mapping[str, int] | None = None,
    ) -> None:
        _check_onnxruntime_arguments(sess_options, providers, provider_options)
        made_for = {"preset": preset, "config": config, "dims": dims}
        self._program, compiled_now = _program_of(path_or_bytes, {k: v for k, v in made_for.items() if v is not None})
        bundle = self._program.bundle
        if len(bundle.programs) > 1:
            # Its inputs are the model's, which the program alone does not hold.
            bundle.need_model("a program of several regions")
        self._options = sess_options
        name = backend or ("golden" if compiled_now and rtl is None else "rtl")
        self._backend = open_backend(name, bundle, rtl, keep_tensors=check)
        _ = bundle.host  # loads them
        self._check = check
        self._rtl = rtl or RtlOptions()
        files_are_kept = rtl is not None and rtl.folder is not None
        self._turn = threading.Lock() if files_are_kept else contextlib.nullcontext()
        self.last: Run | None = None
        """The run that finished last."""

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the inputs."""
        return {i.name: tuple(i.shape) for i in self._program.bundle.inputs}

    def get_inputs(self) -> list[NodeArg]:
        """Name, type and shape of every input."""
        return list(self._program.bundle.inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Name, type and shape of every output."""
        return list(self._program.bundle.outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """An empty list: all initializers are constants of the program."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """The metadata of the model's file."""
        return self._metadata

    @cached_property
    def _metadata(self) -> ModelMetadata:
        model = self._program.bundle.model
        return ModelMetadata(self._program.program.name) if model is None else read_metadata(model)

    def get_providers(self) -> list[str]:
        """Where nodes run: on the accelerator and on the host."""
        return list(PROVIDERS)

    def get_session_options(self) -> object:
        """The `sess_options` of the constructor."""
        return self._options

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, ArrayLike], run_options: object = None
    ) -> list[NDArray[Any]]:
        """The outputs named in `output_names`, or all outputs, for the inputs in `input_feed`.

        None and an empty list stand for all outputs. `run_options` are accepted without effect. A program for one image
        runs N times for inputs with N images, and the outputs are stacked; `last` is then the run of the last image.

        Raises
        ------
        UsageError
            A name, rank, shape or type is invalid.
        MismatchError
            `check` is set and a byte differs. Its fields name the first difference. On the RTL, these are instruction
            and cycle of the first wrong write, found by a second simulation.
        """
        names = self._wanted(output_names)
        bundle = self._program.bundle
        images = split_batch(input_feed, bundle.inputs, bundle.outputs)
        results = [self._run_once(names, feed) for feed in images]
        return results[0] if len(results) == 1 else [np.concatenate(values) for values in zip(*results, strict=True)]

    def run_frames(
        self, output_names: Sequence[str] | None, frames: Iterable[Mapping[str, ArrayLike]]
    ) -> Iterator[list[NDArray[Any]]]:
        """The outputs of `run` for each of `frames`, in order.

        The accelerator runs in a thread of its own: while it does, this iterator takes the next frame from `frames`,
        and the caller works on the outputs of the last one.
        """
        return in_turn(frames, lambda feed: self.run(output_names, feed))

    def _run_once(self, names: Sequence[str], feed: Mapping[str, ArrayLike]) -> list[NDArray[Any]]:
        """The outputs for inputs of the program's shapes."""
        feeds = typed_feeds(feed, self._program.bundle.inputs)
        with self._turn:
            done = execute(self._program.bundle, self._backend, feeds, check=self._check)
            if can_locate(done):
                done = locate(self._program.bundle, done, self._rtl)
        self.last = Run(self._program.program, done)
        if done.mismatches:
            raise _mismatch(done)
        return [done.model_outputs[n] for n in names]

    def _wanted(self, output_names: Sequence[str] | None) -> list[str]:
        """The names of the requested outputs."""
        if isinstance(output_names, str):
            raise UsageError(
                f"output_names must be a list of names, not the string {output_names!r}; write [{output_names!r}]"
            )
        known = [o.name for o in self._program.bundle.outputs]
        if unknown := [n for n in output_names or () if n not in known]:
            raise UsageError(f"output must be one of {', '.join(known)}, not {unknown[0]!r}")
        return list(output_names or known)

    def io_binding(self) -> NoReturn:
        """Not supported: the accelerator's memory is simulated, so no buffer of the caller can be bound to it."""
        _refuse_binding("io_binding")

    def run_with_iobinding(self, iobinding: object, run_options: object = None) -> NoReturn:
        """Not supported; see `io_binding`."""
        _refuse_binding("run_with_iobinding")

    def __repr__(self) -> str:
        name, bundle = self._program.program.name, self._program.bundle
        inputs, outputs = (", ".join(f"{a.name} {a.shape}" for a in args) for args in (bundle.inputs, bundle.outputs))
        hardware = hardware_name(self._program.program)
        return f"<Session {name!r} for {hardware} on {self._backend.name}, {inputs} -> {outputs}>"


def _program_of(
    source: Program | PathLike | bytes | onnx.ModelProto, made_for: Mapping[str, Any]
) -> tuple[Program, bool]:
    """The program of a source, and whether it was compiled now; `made_for` are arguments of `compile`."""
    if isinstance(source, onnx.ModelProto):
        return compile(source, **made_for), True
    program = source if isinstance(source, Program) else load_program(source)
    if program is None:
        return compile(source, **made_for), True
    if made_for:
        raise UsageError(f"{', '.join(made_for)} cannot be set for a program that is already compiled; give the model")
    return program, False


def _check_onnxruntime_arguments(options: object, providers: object, provider_options: object) -> None:
    if isinstance(options, str):
        raise UsageError(f"sess_options must be onnxruntime.SessionOptions, not {options!r}; write backend={options!r}")
    for name, given in (("providers", providers), ("provider_options", provider_options)):
        if given is not None and (isinstance(given, str) or not isinstance(given, Sequence)):
            raise UsageError(f"{name} must be a list, not {given!r}; write {name}=[{given!r}]")


def _mismatch(done: RunResult) -> MismatchError:
    """The error for a run that differs, with the first difference in its fields."""
    worst = next(c for c in done.checks if c.mismatches)
    text = f"{worst.tensor} differs from {worst.against} in {worst.mismatches} bytes, {worst.first}"
    names = ("layer", "node", "tensor", "coordinate", "expected", "got", "instruction", "cycle")
    return MismatchError(text, **{name: getattr(done.first_divergence, name) for name in names})


def _refuse_binding(call: str) -> NoReturn:
    raise UsageError(
        f"{call} is not supported, because the accelerator's memory is simulated; call run() with arrays instead"
    )
